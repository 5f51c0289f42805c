"""Whether the service lives, and whether it is ready. Open to everybody, so only an admin sees what is stored."""

from __future__ import annotations

import asyncio

from fastapi import Request, Response
from pydantic import BaseModel, ConfigDict, Field

from souvenir.api import VERSION
from souvenir.api.caller import Engine, address_of, sent_key, service_of
from souvenir.api.errors import error_response, host_refusal
from souvenir.api.json_route import router
from souvenir.api.service import Service
from souvenir.settings import EmbedProvider
from souvenir.types import Readiness, Scope

routes = router("health")


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

    status: str = Field(description="`ok`, as long as there is an answer at all.")
    service: str = Field(description="The family of services that clients of this API look for.")
    version: str
    total_memories: int | None = Field(
        default=None, description="In the default namespace; if an admin asks, or nobody needs a key."
    )
    dimension: int | None = Field(default=None, description="Of a vector; likewise.")
    model: str | None = Field(default=None, description="The embedding model; likewise.")
    embedding_backend: str | None = Field(
        default=None, description="Who makes the vectors: `local`, `openai` or `ollama`; likewise."
    )
    embedding_dimension: int | None = Field(default=None, description="The same as `dimension`.")
    database_path: str | None = Field(default=None, description="The file that everything stands in; likewise.")


class ReadyResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "ready": True,
                    "status": "ready",
                    "index_count": 1204,
                    "record_count": 1204,
                    "qdrant_count": 1204,
                    "metadata_count": 1204,
                }
            ]
        }
    )

    ready: bool
    status: str = Field(description="`ready`; `starting` while model or index are loaded; `error` if they cannot be.")
    index_count: int | None = Field(
        description="Memories of the default namespace that a search can find; null unless an admin asks, or nobody "
        "needs a key."
    )
    record_count: int | None = Field(description="Memories that are stored there; likewise.")
    qdrant_count: int | None = Field(description="The same as `index_count`.")
    metadata_count: int | None = Field(description="The same as `record_count`.")

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
        )


class NotReadyBody(BaseModel):
    """The error body whose `detail` is the state."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "detail": {
                        "ready": False,
                        "status": "starting",
                        "index_count": 0,
                        "record_count": 1204,
                        "qdrant_count": 0,
                        "metadata_count": 1204,
                    },
                    "code": "not_ready",
                    "request_id": "4f9c2a7d6b1e4c0f8a3d5e7b9c1f2a4d",
                }
            ]
        }
    )

    detail: ReadyResponse
    code: str
    request_id: str


@routes.get("/health", summary="Ask whether the service lives", responses=host_refusal())
async def health(request: Request) -> HealthResponse:
    """Answer at once, whatever else is being done."""
    answer = HealthResponse(status="ok", service="memories", version=VERSION)
    if await _tells_all(request):
        # Not on one of the threads that all routes share, where it would queue behind searches.
        await asyncio.to_thread(_tell, answer, service_of(request))
    return answer


def _tell(answer: HealthResponse, service: Service) -> None:
    embedder, provider = service.engine.models.serving.embedder, service.model.spec.provider
    answer.total_memories = service.engine.count(Scope())
    answer.dimension = answer.embedding_dimension = embedder.dim
    answer.model = embedder.model_id
    answer.embedding_backend = "local" if provider is EmbedProvider.ONNX else provider.value
    answer.database_path = str(service.settings.database_path.absolute())


@routes.get(
    "/health/ready",
    summary="Ask whether the service is ready",
    response_model=ReadyResponse,
    responses={**host_refusal(), 503: {"model": NotReadyBody, "description": "Not yet, or not any more."}},
)
async def ready(request: Request, engine: Engine) -> ReadyResponse | Response:
    """Tell whether searches are answered now, and from all that is stored."""
    readiness = await asyncio.to_thread(engine.readiness)
    failed = service_of(request).model.load_failed.is_set()
    state = ReadyResponse.of(readiness, load_failed=failed, tells_all=await _tells_all(request))
    if not state.ready:
        return error_response(request.scope["state"], 503, "not_ready", state.model_dump())
    return state


async def _tells_all(request: Request) -> bool:
    return service_of(request).door.admits_admin(await sent_key(request), address_of(request))
