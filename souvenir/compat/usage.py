"""The status of usage tracking, which this service does not have."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query
from pydantic import BaseModel, Field

from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import Admin
from souvenir.server.routing import Routes

routes = Routes("figures")


class UsageResponse(BaseModel):
    enabled: bool = Field(description="Always false: client usage is not tracked; `/metrics` counts requests by route.")


@routes.get(
    "/usage",
    summary="Get usage tracking status",
    cost=CostClass.LIGHT,
    sdk="figures.usage",
)
def usage(
    scope: Admin,
    period: Annotated[
        str, Query(pattern="^(today|daily|7d|30d|all)$", description="Accepted for compatibility and ignored.")
    ] = "7d",
    session_id: Annotated[str, Query(max_length=200, description="Accepted for compatibility and ignored.")] = "",
) -> UsageResponse:
    """Report that client usage is not tracked."""
    return UsageResponse(enabled=False)
