"""The routes of the proxy, at the paths of the vendors' own APIs."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

from fastapi import Path, Request, Response

from souvenir.compat.proxy import proxy_of
from souvenir.core.errors import InvalidRequest
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import DOTS, NOTHING, Reader, Writer
from souvenir.server.routing import Declaration, Decorator, Routes


class ProxyRoutes(Routes):
    """Routes of the vendors' APIs, which their own documents describe: not in the OpenAPI document."""

    def _add(self, method: str, path: str, declared: Declaration) -> Decorator:
        declared |= {"include_in_schema": False, "plain_errors": True, "vendor_api": True}
        return super()._add(method, path, declared)


routes = ProxyRoutes("proxy")

ModelName = Annotated[str, Path(max_length=200, description="The vendor's name of the model.")]


@routes.post("/v1/chat/completions", cost=CostClass.PROXY, access=NOTHING)
async def complete_chat(request: Request, scope: Writer) -> Response:
    """Pass a call in OpenAI's form on, with the memory of its agent."""
    return _passed(request, "/v1/chat/completions")


@routes.post("/v1/responses", cost=CostClass.PROXY, access=NOTHING)
async def respond(request: Request, scope: Writer) -> Response:
    """Pass a call of OpenAI's Responses on, with the memory of its agent."""
    return _passed(request, "/v1/responses")


@routes.post("/v1/messages", cost=CostClass.PROXY, access=NOTHING)
async def answer_message(request: Request, scope: Writer) -> Response:
    """Pass a call in Anthropic's form on, with the memory of its agent."""
    return _passed(request, "/v1/messages")


@routes.post("/v1/messages/count_tokens", cost=CostClass.PROXY, access=NOTHING)
async def count_tokens(request: Request, scope: Writer) -> Response:
    """Pass a request on that counts tokens; the memory's are not counted."""
    return _passed(request, "/v1/messages/count_tokens")


@routes.get("/v1/models", cost=CostClass.PROXY, access=NOTHING)
async def list_models(request: Request, scope: Reader) -> Response:
    """Pass on the list of the vendor's models."""
    return _passed(request, "/v1/models")


@routes.get("/v1/models/{model_name:path}", cost=CostClass.PROXY, access=NOTHING)
async def get_model(model_name: ModelName, request: Request, scope: Reader) -> Response:
    """Pass on the description of one of the vendor's models."""
    if not DOTS.isdisjoint(model_name.split("/")):
        raise InvalidRequest("The path names no model; send the vendor's name of one")
    return _passed(request, f"/v1/models/{quote(model_name)}")


def _passed(request: Request, path: str) -> Response:
    return proxy_of(request.app.state).answer(request, path)
