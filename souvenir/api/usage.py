"""The quotas of a key and their usage."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request
from pydantic import BaseModel, Field

from souvenir.access.keys import KeyUsage
from souvenir.api.keys import KeyQuotas
from souvenir.core.errors import Forbidden
from souvenir.core.types import Role
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import NOTHING, Reader, caller_of, service_of
from souvenir.server.routing import Routes

routes = Routes("figures")


class UsedQuotas(BaseModel):
    """The usage that counts towards each quota."""

    requests_per_minute: int = Field(description="Requests of the last 60 seconds; 0 if they have no quota.")
    memories: int
    stored_bytes: int
    jobs_per_day: int = Field(description="Since midnight UTC.")
    extractions_per_day: int = Field(description="Since midnight UTC.")


class UsageResponse(BaseModel):
    enabled: bool = Field(description="Always false: past usage is not recorded; `/metrics` counts requests by route.")
    key_id: str | None = Field(description="Null for callers without a managed key, who have no quotas.")
    quotas: KeyQuotas = Field(description="The limits of the key, including the defaults of KEY_QUOTAS.")
    used: UsedQuotas

    @classmethod
    def of(cls, usage: KeyUsage) -> UsageResponse:
        used = UsedQuotas(
            requests_per_minute=usage.requests,
            memories=usage.stored.memories,
            stored_bytes=usage.stored.stored_bytes,
            jobs_per_day=usage.today.jobs,
            extractions_per_day=usage.today.extractions,
        )
        key_id = None if usage.key is None else usage.key.id
        return cls(enabled=False, key_id=key_id, quotas=KeyQuotas.of(usage.quotas), used=used)


@routes.get(
    "/usage",
    summary="Get quotas and usage",
    cost=CostClass.LIGHT,
    access=NOTHING,
    sdk="figures.usage",
    errors=[404],
)
def usage(
    scope: Reader,
    request: Request,
    key_id: Annotated[
        str | None, Query(max_length=200, description="The id of another key, for an admin; by default the own key.")
    ] = None,
    period: Annotated[
        str, Query(pattern="^(today|daily|7d|30d|all)$", description="Accepted for compatibility and ignored.")
    ] = "7d",
    session_id: Annotated[str, Query(max_length=200, description="Accepted for compatibility and ignored.")] = "",
) -> UsageResponse:
    """Get the quotas of a key and what it has used of them."""
    caller = caller_of(request)
    own = None if caller.key is None else caller.key.id
    if key_id not in (None, own) and caller.role is not Role.ADMIN:
        raise Forbidden("Only an admin may see the usage of another key; leave key_id out to see your own")
    return UsageResponse.of(service_of(request).keys.usage_of(key_id or own))
