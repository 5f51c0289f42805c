"""Promotions, which this service does not have."""

from __future__ import annotations

from souvenir.core.errors import NotFound
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import Reader
from souvenir.server.routing import Routes

routes = Routes("folders")

SENTENCE = (
    "This service has no promotions: memories of a person are not copied to a project. Store a shared memory with "
    "POST /memory/add and a source below project/, or change its source with PATCH /memory/{id}"
)


def refuse_promotion(scope: Reader) -> None:
    """:raises NotFound: Always; it names the routes that replace promotions."""
    raise NotFound(SENTENCE)


for _path in ("/promotions", "/promotions/{rest:path}"):
    for _declare in (routes.get, routes.post, routes.put, routes.patch, routes.delete):
        _declare(_path, cost=CostClass.LIGHT, include_in_schema=False)(refuse_promotion)
