"""Liveness and readiness. Both are open; only an admin sees counts and settings."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from fastapi import Request, Response
from pydantic import BaseModel, ConfigDict, Field

from souvenir import VERSION
from souvenir.core.errors import DatabaseUnavailable, Overloaded
from souvenir.core.settings import EmbedProvider
from souvenir.core.types import Readiness, Scope
from souvenir.server.errors import error_response, open_error_responses
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import Engine, address_of, sent_key, service_of
from souvenir.server.routing import Routes
from souvenir.server.service import Service

routes = Routes("health")


class HealthResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "status": "ok",
                    "service": "memories",
                    "version": VERSION,
                    "total_memories": 1204,
                    "dimension": 384,
                    "model": "all-MiniLM-L6-v2",
                    "embedding_backend": "local",
                    "embedding_dimension": 384,
                    "database_path": "/data/souvenir.db",
                }
            ]
        }
    )

    status: str = Field(description="Always `ok`.")
    service: str = Field(description="The service family that clients of this API check for.")
    version: str
    total_memories: int | None = Field(
        default=None,
        description="The number of memories in the default namespace; only for admins, or if no key is required.",
    )
    dimension: int | None = Field(
        default=None, description="The dimension of the vectors; only for admins, or if no key is required."
    )
    model: str | None = Field(
        default=None, description="The embedding model; only for admins, or if no key is required."
    )
    embedding_backend: str | None = Field(
        default=None,
        description="The embedding provider: `local`, `openai` or `ollama`; only for admins, or if no key is required.",
    )
    embedding_dimension: int | None = Field(default=None, description="Same as `dimension`.")
    database_path: str | None = Field(
        default=None, description="The path or the address of the database; only for admins, or if no key is required."
    )


class WarningResponse(BaseModel):
    code: str = Field(examples=["commits_missing"])
    message: str | None = Field(
        description="The condition, and the next command or action; null unless an admin asks or no key is required."
    )


class ReadyResponse(BaseModel):
    ready: bool
    status: str = Field(
        description="`ready`; `starting` while model or index are loading; `error` if they cannot be loaded; "
        "`database_unavailable` while PostgreSQL cannot be reached.",
        examples=["ready"],
    )
    index_count: int | None = Field(
        description="The number of searchable memories of the default namespace; null unless an admin asks or no "
        "key is required."
    )
    record_count: int | None = Field(
        description="The number of stored memories of the default namespace; null "
        "unless an admin asks or no key is required."
    )
    qdrant_count: int | None = Field(description="Same as `index_count`.")
    metadata_count: int | None = Field(description="Same as `record_count`.")
    warnings: list[WarningResponse] = Field(
        description="Conditions that an operator must look at although requests are answered; usually empty."
    )

    @classmethod
    def of(cls, readiness: Readiness, *, load_failed: bool, tells_all: bool) -> ReadyResponse:
        indexed, stored = (readiness.index_count, readiness.record_count) if tells_all else (None, None)
        return cls(
            ready=readiness.ready,
            status="error" if load_failed and not readiness.ready else readiness.status,
            index_count=indexed,
            record_count=stored,
            qdrant_count=indexed,
            metadata_count=stored,
            warnings=[
                WarningResponse(code=code, message=message if tells_all else None)
                for code, message in readiness.warnings
            ],
        )


class NotReadyBody(BaseModel):
    """The error body whose `detail` is the state."""

    detail: ReadyResponse
    code: str = Field(examples=["not_ready"])
    request_id: str = Field(examples=["4f9c2a7d6b1e4c0f8a3d5e7b9c1f2a4d"])


@routes.get(
    "/health",
    summary="Check liveness",
    cost=CostClass.HEALTH,
    sdk="health.check",
    responses=open_error_responses(),
)
async def health(request: Request) -> HealthResponse:
    """Respond immediately, regardless of load."""
    answer = HealthResponse(status="ok", service="memories", version=VERSION)
    if await _tells_all(request):
        # Not on one of the threads that all routes share, where it would queue behind searches.
        await asyncio.to_thread(_tell, answer, service_of(request))
    return answer


def _tell(answer: HealthResponse, service: Service) -> None:
    embedder, provider = service.engine.models.serving.embedder, service.model.spec.provider
    # The service lives even if its database does not.
    with suppress(DatabaseUnavailable, Overloaded):
        answer.total_memories = service.engine.count(Scope())
    answer.dimension = answer.embedding_dimension = embedder.dim
    answer.model = embedder.model_id
    answer.embedding_backend = "local" if provider is EmbedProvider.ONNX else provider.value
    answer.database_path = service.settings.database_place


@routes.get(
    "/health/ready",
    summary="Check readiness",
    cost=CostClass.HEALTH,
    sdk="health.ready",
    response_model=ReadyResponse,
    responses={
        **open_error_responses(),
        503: {"model": NotReadyBody, "description": "Not ready: the service is starting, or a component has failed."},
    },
)
async def ready(request: Request, engine: Engine) -> ReadyResponse | Response:
    """Report whether searches can be answered now, from all stored data."""
    readiness = await asyncio.to_thread(engine.readiness)
    failed = service_of(request).model.load_failed.is_set()
    state = ReadyResponse.of(readiness, load_failed=failed, tells_all=await _tells_all(request))
    if not state.ready:
        return error_response(request.scope["state"], 503, "not_ready", state.model_dump())
    return state


async def _tells_all(request: Request) -> bool:
    return service_of(request).authenticator.is_admin(sent_key(request.state.headers), address_of(request))
