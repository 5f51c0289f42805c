"""The calls of a period, and the quotas of a key."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import timedelta
from typing import Annotated

from fastapi import Query, Request
from pydantic import BaseModel, Field

from souvenir.access.authenticator import Caller
from souvenir.access.keys import KeyUsage
from souvenir.api.keys import KeyQuotas
from souvenir.core.errors import Forbidden
from souvenir.core.timestamps import EPOCH
from souvenir.core.types import Role
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import NOTHING, Reader, caller_of, service_of
from souvenir.server.routing import Routes
from souvenir.server.usage import CLIENT, INVOCATION, KEY, MODEL, MODEL_CALLS, SESSION, SOURCE
from souvenir.store.admin.usage import KEPT_DAYS, OTHER, UsageRow

routes = Routes("figures")

DAYS_OF = {"today": 1, "daily": 1, "7d": 7, "30d": 30, "all": KEPT_DAYS + 1}
"""The number of days (UTC, today included) of each period."""

MAX_NAMES = 100
"""Maximum number of names in a list; the calls of the others are summed up as `OTHER`."""


class UsedQuotas(BaseModel):
    """The usage that counts towards each quota."""

    requests_per_minute: int = Field(description="Requests of the last 60 seconds; 0 if they have no quota.")
    memories: int
    stored_bytes: int
    jobs_per_day: int = Field(description="Since midnight UTC.")
    extractions_per_day: int = Field(description="Since midnight UTC.")

    @classmethod
    def of(cls, usage: KeyUsage) -> UsedQuotas:
        return cls(
            requests_per_minute=usage.requests,
            memories=usage.stored.memories,
            stored_bytes=usage.stored.stored_bytes,
            jobs_per_day=usage.today.jobs,
            extractions_per_day=usage.today.extractions,
        )


Calls = dict[str, int]
"""Calls by name, most first."""


class OperationUsage(BaseModel):
    """Calls of one operation. Only calls that name a source, client, session or invocation are in those lists."""

    total: int
    by_source: Calls = Field(description="By the first segment of the source.", examples=[{"claude-code": 12}])
    by_client: Calls = Field(description="By `X-Memories-Client`.", examples=[{"codex": 12}])
    by_session: Calls = Field(description="By `X-Memories-Session-Id`.", examples=[{"5f2c": 12}])
    by_invocation: Calls = Field(description="By `X-Memories-Invocation`.", examples=[{"hook": 12}])


class ModelUsage(BaseModel):
    calls: int
    input_tokens: int
    output_tokens: int
    estimated_cost_usd: float | None = Field(description="By list prices; null if the price is unknown.")

    @classmethod
    def of(cls, rows: Iterable[UsageRow]) -> ModelUsage:
        found = list(rows)
        costs = [row.cost_usd for row in found]
        return cls(
            calls=sum(row.calls for row in found),
            input_tokens=sum(row.input_tokens for row in found),
            output_tokens=sum(row.output_tokens for row in found),
            estimated_cost_usd=None if None in costs else round(sum(filter(None, costs)), 6),
        )


class ExtractionUsage(BaseModel):
    """Calls of language models by extractions, of all sessions."""

    total_calls: int
    total_input_tokens: int
    total_output_tokens: int
    by_model: dict[str, ModelUsage] = Field(
        description="Empty for the usage of one key.",
        examples=[
            {"gpt-4.1-mini": {"calls": 2, "input_tokens": 900, "output_tokens": 80, "estimated_cost_usd": 0.000488}}
        ],
    )
    estimated_cost_usd: float | None = Field(
        description="By list prices; null if the price of one of the models is unknown."
    )

    @classmethod
    def of(cls, rows: Iterable[UsageRow], by_model: dict[str, list[UsageRow]]) -> ExtractionUsage:
        total = ModelUsage.of(rows)
        return cls(
            total_calls=total.calls,
            total_input_tokens=total.input_tokens,
            total_output_tokens=total.output_tokens,
            by_model={model: ModelUsage.of(of_model) for model, of_model in by_model.items()},
            estimated_cost_usd=total.estimated_cost_usd,
        )


class UsageResponse(BaseModel):
    enabled: bool = Field(description="False if USAGE_TRACKING is off; then no calls are counted or shown.")
    period: str | None = Field(default=None, examples=["7d"])
    session_id: str | None = Field(default=None, description="The session of the calls; empty for all sessions.")
    operations: dict[str, OperationUsage] | None = Field(
        default=None,
        description="Calls that were answered without an error, by the id of the operation in the OpenAPI document or "
        "the name of the tool of MCP.",
        examples=[{"search": {"total": 3, "by_source": {}, "by_client": {}, "by_session": {}, "by_invocation": {}}}],
    )
    extraction: ExtractionUsage | None = None
    by_key: Calls | None = Field(
        default=None,
        description="By the id of the key, `api-key` for API_KEY, or `anonymous`.",
        examples=[{"api-key": 3}],
    )
    by_day: Calls | None = Field(default=None, description="By date in UTC.", examples=[{"2025-04-02": 3}])
    key_id: str | None = Field(description="Null for callers without a managed key, who have no quotas.")
    quotas: KeyQuotas = Field(description="The limits of the key, including the defaults of KEY_QUOTAS.")
    used: UsedQuotas


@routes.get(
    "/usage",
    summary="Get usage and quotas",
    cost=CostClass.LIGHT,
    access=NOTHING,
    sdk="figures.usage",
    errors=[404],
)
def usage(
    scope: Reader,
    request: Request,
    key_id: Annotated[
        str | None,
        Query(max_length=200, description="The id of another key, for an admin; by default the own key's quotas."),
    ] = None,
    period: Annotated[
        str,
        Query(pattern="^(today|daily|7d|30d|all)$", description="Days in UTC, with today; `all`: the last 400 days."),
    ] = "7d",
    session_id: Annotated[str, Query(max_length=200, description="Only the calls of this session, for an admin.")] = "",
) -> UsageResponse:
    """Get the calls of a period (of all callers for an admin) and a key's quotas with what it has used of them."""
    caller, service = caller_of(request), service_of(request)
    own = None if caller.key is None else caller.key.id
    if key_id not in (None, own) and caller.role is not Role.ADMIN:
        raise Forbidden("Only an admin may see the usage of another key; leave key_id out to see your own")
    of_key = service.keys.usage_of(key_id or own)
    response = UsageResponse(
        enabled=service.usage.enabled,
        key_id=None if of_key.key is None else of_key.key.id,
        quotas=KeyQuotas.of(of_key.quotas),
        used=UsedQuotas.of(of_key),
    )
    if not service.usage.enabled:
        return response
    namespace = scope.namespace if caller.role is Role.ADMIN and "x-namespace" in request.headers else None
    rows = service.usage.since(service.usage.today - DAYS_OF[period] + 1, namespace)
    shown = _shown_to(caller, key_id, session_id, rows)
    return response.model_copy(update={"period": period, "session_id": session_id, **shown})


def _shown_to(caller: Caller, key_id: str | None, session_id: str, rows: list[UsageRow]) -> dict[str, object]:
    """Return the calls of one key, of one session, or of all."""
    chosen = ("", "")
    if key_id is not None or caller.role is not Role.ADMIN:
        chosen = (KEY, caller.actor if key_id is None else f"key:{key_id}")
    elif session_id:
        chosen = (SESSION, session_id)
    calls = [row for row in rows if row.operation != MODEL_CALLS]
    of_models = [row for row in rows if row.operation == MODEL_CALLS]
    totals = [row for row in calls if (row.dimension, row.name) == chosen]
    total, days, keys = Counter[str](), Counter[str](), Counter[str]()
    for row in totals:
        total[row.operation] += row.calls
        days[(EPOCH + timedelta(days=row.day)).date().isoformat()] += row.calls
    names: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in calls if chosen == ("", "") else totals:
        names[row.operation, row.dimension][row.name] += row.calls
        if row.dimension == KEY:
            keys[row.name.removeprefix("key:")] += row.calls
    by_model: defaultdict[str, list[UsageRow]] = defaultdict(list)
    spent = [row for row in of_models if (row.dimension, row.name) == chosen]
    if chosen[0] != KEY:
        spent = [row for row in of_models if row.dimension == MODEL]
        for row in spent:
            by_model[row.name].append(row)
    return {
        "operations": {
            operation: OperationUsage(
                total=count,
                by_source=_most(names[operation, SOURCE]),
                by_client=_most(names[operation, CLIENT]),
                by_session=_most(names[operation, SESSION]),
                by_invocation=_most(names[operation, INVOCATION]),
            )
            for operation, count in total.most_common()
        },
        "extraction": ExtractionUsage.of(spent, by_model),
        "by_key": _most(keys),
        "by_day": dict(sorted(days.items())),
    }


def _most(calls: Counter[str]) -> Calls:
    """Return the names with the most calls, and the sum of the others."""
    most = dict(calls.most_common(MAX_NAMES))
    if (rest := calls.total() - sum(most.values())) > 0:
        most[OTHER] = most.get(OTHER, 0) + rest
    return most
