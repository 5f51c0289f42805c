"""What an operator does to a service that goes on: another embedding model, or the same one loaded again."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from souvenir.api.caller import Admin, RunningService
from souvenir.api.errors import error_responses
from souvenir.api.fields import Clean
from souvenir.api.json_route import router
from souvenir.api.long_work import ACCEPTED, DEFAULT_WAIT_S, WaitS
from souvenir.embedding.specs import ModelSpec
from souvenir.reembedding.job import Reembedding

routes = router("maintenance")

_MODEL_ID = "all-MiniLM-L6-v2@53aa51172d14"


class ReembedRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"model": "models/all-MiniLM-L6-v2"}]})

    model: Annotated[str, StringConstraints(min_length=1, max_length=500), Clean] | None = Field(
        default=None, description="A model of the provider EMBED_PROVIDER; without it, EMBED_MODEL."
    )

    def spec(self, named: ModelSpec) -> ModelSpec:
        """:param named: The model of the settings."""
        return named if self.model in (None, named.model) else replace(named, model=self.model, revision=None)


class ReembedResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"model": _MODEL_ID, "embedded": 1204, "already_serving": False}]}
    )

    model: str = Field(description="The id of the model that serves now.")
    embedded: int = Field(description="Passages that it has embedded.")
    already_serving: bool = Field(description="Whether it did before, so that there was nothing to embed.")


class ReloadResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"success": True, "model": _MODEL_ID}]})

    success: bool
    model: str = Field(description="The id of the model.")


@routes.post(
    "/maintenance/reembed",
    summary="Change the embedding model",
    response_model=ReembedResponse,
    responses={**error_responses(409), **ACCEPTED},
)
def reembed(
    scope: Admin, service: RunningService, body: ReembedRequest | None = None, wait_s: WaitS = DEFAULT_WAIT_S
) -> ReembedResponse | JSONResponse:
    """Embed every passage of every namespace with another model, which then takes over; searches go on meanwhile."""
    spec = (body or ReembedRequest()).spec(ModelSpec.of(service.settings))
    result = service.long_work.run(Reembedding.kind, scope, {"spec": spec.to_json()}, wait_s=wait_s)
    return result if isinstance(result, JSONResponse) else ReembedResponse.model_validate(result)


@routes.post("/maintenance/embedder/reload", summary="Load the model again", responses=error_responses(409))
def reload_embedder(scope: Admin, service: RunningService) -> ReloadResponse:
    """Load the embedding model again, and use it from now on if it is still the one that made the vectors."""
    model = service.model.reload()
    service.audit.act(scope, "model.reload", model)
    return ReloadResponse(success=True, model=model)
