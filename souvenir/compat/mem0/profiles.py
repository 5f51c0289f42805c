"""Mem0's profiles of users: what is known of a user, in the form of a schema.

A profile is not stored. It is made when it is read, like an export (`exports`), so it is always up to date, and a job
that generates profiles has nothing to do: it is complete at once. Its id has the number of its users. The settings are
in the fields of the extraction profile of `mem0/`, under a name that nothing else reads.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from fastapi import Path, Request
from pydantic import BaseModel, Field, model_validator

from souvenir.api.fields import UserName
from souvenir.compat.mem0.entities import EntityType, named_entities
from souvenir.compat.mem0.exports import Form, Instructions, filled, require_filled
from souvenir.compat.mem0.filling import selected
from souvenir.compat.mem0.models import Strict
from souvenir.compat.mem0.projects import PREFIX
from souvenir.compat.mem0.routes import Mem0Routes
from souvenir.compat.mem0.schemas import ExportShape, read_schema
from souvenir.core.errors import InvalidRequest, JobNotFound, NothingToDo, UserNotFound
from souvenir.core.labels import USER_ID
from souvenir.core.types import JsonObject, Scope
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import NOTHING, REMEMBERED, Admin, Reader, RunningService
from souvenir.server.service import Service

routes = Mem0Routes("mem0")

JOBS = "/v2/profiles/jobs/"
SETTINGS = "/v2/profiles/settings/"
STORED = "mem0_user_profiles"
"""The name of the settings in the fields of the extraction profile."""

LISTED: JsonObject = {"type": "object", "properties": {"memories": {"type": "array", "items": {"type": "string"}}}}
"""The schema of a profile if none is set: the texts of all memories, which needs no model."""

SAMPLED = 3
MAX_SAMPLED = 10
_JOB = re.compile(r"(trigger)-(1)|(sample)-(\d|10)")


class UserSettings(Strict):
    form: str | dict[str, Any] | None = Field(default=None, alias="schema")
    custom_instructions: Instructions | None = None


class EntitySettings(Strict):
    user: UserSettings


class SettingsRequest(Strict):
    """Omitted fields are kept; null resets one of a user's."""

    enabled: bool | None = None
    entities: EntitySettings | None = None


class ProfileSettings(BaseModel):
    """The settings as they are stored."""

    enabled: bool = False
    form: dict[str, Any] | None = None
    custom_instructions: str | None = None

    @property
    def made(self) -> Form:
        return Form(self.form or LISTED, self.custom_instructions or "")


class Mem0Settings(BaseModel):
    """`capabilities` says whether a model can fill a schema that lists no memories."""

    enabled: bool
    capabilities: dict[str, bool]
    entities: dict[str, dict[str, Any]]


class Mem0Profile(BaseModel):
    entity_type: str
    entity_id: str
    status: str
    profile: dict[str, Any]
    updated_at: str | None
    generation_count: int


class JobRequest(Strict):
    operation: Literal["trigger", "sample"]
    entity_type: Literal["user"]
    entity_id: UserName | None = None
    limit: Annotated[int, Field(ge=1, le=MAX_SAMPLED)] = SAMPLED

    @model_validator(mode="after")
    def _names_one(self) -> Self:
        if self.operation == "trigger" and self.entity_id is None:
            raise ValueError("trigger takes the entity_id of a user")
        return self


class Mem0ProfileJob(BaseModel):
    job_id: str
    event_id: str
    operation: str
    entity_type: str
    status: str
    status_url: str
    entity_count_reserved: int
    sampled: int
    entity_ids: list[str]
    replayed: bool


@routes.get("/v2/entities/user/{name}/profile/", cost=CostClass.SEARCH, access=REMEMBERED)
def profile(name: Annotated[UserName, Path()], scope: Reader, service: RunningService, request: Request) -> Mem0Profile:
    """Make the profile of a user from the memories of the moment."""
    found = selected(service, request, scope, {USER_ID: {"in": [name]}})
    if not found:
        raise UserNotFound(name)
    settings = _settings(service, scope)
    return Mem0Profile(
        entity_type="user",
        entity_id=name,
        status="succeeded" if settings.enabled else "not_enabled",
        profile=filled(service, settings.made, found) if settings.enabled else {},
        updated_at=max(one.updated_at for _, one in found) if settings.enabled else None,
        generation_count=int(settings.enabled),
    )


@routes.get(SETTINGS, cost=CostClass.LIGHT, access=NOTHING)
def settings(scope: Reader, service: RunningService) -> Mem0Settings:
    """Get the settings of the profiles of a namespace."""
    return _shown(service, _settings(service, scope))


@routes.post(SETTINGS, cost=CostClass.LIGHT)
def set_settings(body: SettingsRequest, scope: Admin, service: RunningService) -> Mem0Settings:
    """Set some of the settings of the profiles of a namespace."""
    if body == SettingsRequest():
        raise NothingToDo("Nothing to update; give enabled, schema or custom_instructions")
    after = _settings(service, scope)
    if body.enabled is not None:
        after.enabled = body.enabled
    if body.entities is not None:
        given = body.entities.user
        if "form" in given.model_fields_set:
            after.form = None if given.form is None else read_schema(given.form)
        if "custom_instructions" in given.model_fields_set:
            after.custom_instructions = given.custom_instructions
    require_filled(service, ExportShape.of(after.made.schema))
    service.maintenance.profiles.put(scope, PREFIX, {STORED: after.model_dump()})
    service.audit.act(scope, "profile.set")
    return _shown(service, after)


@routes.post(JOBS, cost=CostClass.SEARCH, access=REMEMBERED)
def generate(body: JobRequest, scope: Reader, service: RunningService, request: Request) -> Mem0ProfileJob:
    """Name the users whose profiles can be read; there is nothing else to do, since they are made when read."""
    settings = _settings(service, scope)
    if not settings.enabled:
        raise InvalidRequest("Profiles are not enabled; an admin enables them with update_profile_settings")
    users = [held.value for kind, held in named_entities(service.engine, scope) if kind is EntityType.USER]
    if body.operation == "sample":
        chosen = sorted(set(users))[: body.limit]
    else:
        chosen = [body.entity_id or ""]
        if chosen[0] not in users:
            raise UserNotFound(chosen[0])
    job_id = f"{body.operation}-{len(chosen)}"
    return Mem0ProfileJob(
        job_id=job_id,
        event_id=job_id,
        operation=body.operation,
        entity_type=body.entity_type,
        status="succeeded",
        status_url=f"{JOBS}{job_id}/",
        entity_count_reserved=len(chosen),
        sampled=len(chosen),
        entity_ids=chosen,
        replayed=False,
    )


@routes.get(JOBS + "{job_id}/", cost=CostClass.LIGHT, access=NOTHING)
def job(job_id: Annotated[str, Path(max_length=100)], scope: Reader) -> dict[str, Any]:
    """Get a job, which was complete when it was created."""
    found = _JOB.fullmatch(job_id)
    if found is None:
        raise JobNotFound(job_id)
    operation, number = filter(None, found.groups())
    total = int(number)
    counts = {"total": total, "completed": total, "succeeded": total, "failed": 0, "skipped": 0}
    return {
        "job": {"job_id": job_id, "operation": operation, "status": "succeeded", "enumeration_complete": True, **counts}
    }


def _settings(service: Service, scope: Scope) -> ProfileSettings:
    return ProfileSettings.model_validate(service.maintenance.profiles.stored(scope, PREFIX).get(STORED, {}))


def _shown(service: Service, settings: ProfileSettings) -> Mem0Settings:
    user = {"schema": settings.form, "custom_instructions": settings.custom_instructions}
    capabilities = {"model": service.provider is not None}
    return Mem0Settings(enabled=settings.enabled, capabilities=capabilities, entities={"user": user})
