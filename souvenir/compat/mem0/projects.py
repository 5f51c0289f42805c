"""Mem0's projects: a project is a namespace, and its members are the keys for it.

The custom instructions of a project are those of the extraction profile of `mem0/`. Settings without an effect here are
refused, so that nobody takes them for set.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any

from fastapi import Query, Request
from pydantic import BaseModel, StringConstraints

from souvenir.api.extraction_profiles import MAX_INSTRUCTION_CHARS
from souvenir.api.fields import Clean, optional_wire_time
from souvenir.compat.mem0.agents import project_scope
from souvenir.compat.mem0.models import AgentId, Mem0Done, Strict
from souvenir.compat.mem0.routes import Mem0Routes, ProjectId
from souvenir.compat.mem0.stored import SOURCE
from souvenir.core.errors import AgentNotFound, NotFound, NotOffered
from souvenir.core.labels import SEPARATOR
from souvenir.core.types import Role, Scope
from souvenir.memories.extraction_profiles import ExtractionProfiles
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import (
    NOTHING,
    Admin,
    Reader,
    RunningService,
    Writer,
    agent_scope,
    caller_of,
)
from souvenir.store.selection import Chooses

routes = Mem0Routes("mem0")

PREFIX = SOURCE + SEPARATOR
"""The prefix of the sources of what is extracted by these routes."""

ORGANISATION = "/api/v1/orgs/organizations/{organisation}/projects/"
PROJECT = ORGANISATION + "{project}/"
MEMBERS = PROJECT + "members/"

DESCRIPTION = "description"
"""The name of the description in the metadata of the agent."""

NO_MEMBERS = "Projects have no members with addresses; POST /api/keys creates a key, with a role, for a namespace"


class Mem0Project(BaseModel):
    """`custom_instructions` is shown to admins, who may read extraction profiles."""

    id: str
    project_id: str
    name: str
    description: str | None
    created_at: str | None
    custom_instructions: str | None = None
    custom_categories: list[Any] = []
    multilingual: bool = True
    decay: bool = False


class CreateProject(Strict):
    name: AgentId
    description: Annotated[str, StringConstraints(max_length=2_000), Clean] | None = None


class UpdateProject(Strict):
    """The ids, which the client repeats from the path, are ignored."""

    custom_instructions: Annotated[str, StringConstraints(max_length=MAX_INSTRUCTION_CHARS), Clean] | None = None
    custom_categories: list[Any] | None = None
    agent_custom_instructions: Any = None
    memory_depth: Any = None
    usecase_setting: Any = None
    multilingual: bool | None = None
    decay: bool | None = None
    org_id: Any = None
    project_id: Any = None

    def require_possible(self) -> None:
        """:raises NotOffered: If something in it would have no effect."""
        if self.custom_categories:
            raise NotOffered("Memories are not categorised by themselves; categories are tags (PATCH /memory/{id})")
        if self.agent_custom_instructions:
            raise NotOffered("All memories of a project are an agent's here; set custom_instructions")
        if self.multilingual is False:
            raise NotOffered("Memories are kept in the language in which they were written; nothing is translated")
        if self.decay:
            raise NotOffered("Memories do not decay by project; recency_half_life_days of POST /search ranks by age")
        if self.memory_depth is not None or self.usecase_setting is not None:
            raise NotOffered("memory_depth and usecase_setting are not offered; set custom_instructions")


class Mem0Member(BaseModel):
    """A key for the namespace; an admin's is for all."""

    user_id: str
    username: str
    role: str


class Mem0Members(BaseModel):
    members: list[Mem0Member]


@routes.get(PROJECT, cost=CostClass.LIGHT, access=NOTHING)
def project(
    project: ProjectId,
    scope: Reader,
    service: RunningService,
    request: Request,
    fields: Annotated[list[str] | None, Query(max_length=100)] = None,
) -> dict[str, Any]:
    """Get a project, or some of its fields; those that it has not are left out."""
    own = project_scope(request, project, Role.READ_ONLY)
    is_admin = caller_of(request).role is Role.ADMIN
    instructions = instructions_of(service.maintenance.profiles, own) if is_admin else None
    shown = _project(service, own, custom_instructions=instructions).model_dump(
        exclude=None if is_admin else {"custom_instructions"}
    )
    return {name: value for name, value in shown.items() if fields is None or name in fields}


@routes.post(ORGANISATION, cost=CostClass.LIGHT)
def create_project(body: CreateProject, scope: Writer, service: RunningService, request: Request) -> Mem0Project:
    """Create an agent, or get the existing one with that name, whose description is kept."""
    own = agent_scope(request, body.name)
    service.agents.create(own, None if body.description is None else {DESCRIPTION: body.description})
    return _project(service, own)


@routes.patch(PROJECT, cost=CostClass.LIGHT)
def update_project(
    project: ProjectId, body: UpdateProject, scope: Admin, service: RunningService, request: Request
) -> Mem0Done:
    """Set the custom instructions of a project; an empty text removes them."""
    body.require_possible()
    own = project_scope(request, project, Role.ADMIN)
    message = "Project updated successfully"
    if body.custom_instructions is not None:
        rules = {"custom_instructions": body.custom_instructions or None}
        service.maintenance.profiles.put(own, PREFIX, {"rules": rules})
        service.audit.act(own, "profile.set")
        if service.provider is None:
            message += "; its instructions take effect when a language model is configured (EXTRACT_PROVIDER)"
    return Mem0Done(message=message)


@routes.delete(PROJECT, cost=CostClass.LONG)
def delete_project(project: ProjectId, scope: Writer, service: RunningService, request: Request) -> Mem0Done:
    """Delete a namespace with everything in it, pinned memories included."""
    own = agent_scope(request, project)
    service.agents.create(own)  # a namespace that was written to without naming its agent has none
    removed = service.removals.remove(own, Chooses.AGENT)
    service.audit.act(own, "agent.delete", detail=f"{removed.messages} messages, {removed.memories} memories")
    return Mem0Done(message="Project deleted successfully")


@routes.get(MEMBERS, cost=CostClass.LIGHT, access=NOTHING)
def members(project: ProjectId, scope: Admin, service: RunningService, request: Request) -> Mem0Members:
    """List the keys for a namespace that were not revoked."""
    own = project_scope(request, project, Role.ADMIN)
    keys = [key for key in service.keys.all() if key.revoked_at is None and key.namespace in (None, own.namespace)]
    roles = {Role.READ_ONLY: "READER"}
    return Mem0Members(
        members=[Mem0Member(user_id=one.id, username=one.name, role=roles.get(one.role, "OWNER")) for one in keys]
    )


def _refuse(project: ProjectId, scope: Admin) -> None:
    """:raises NotOffered: Always; it says what to use instead."""
    raise NotOffered(NO_MEMBERS)


for _declare in (routes.post, routes.put, routes.delete):
    _declare(MEMBERS, cost=CostClass.LIGHT)(_refuse)


def instructions_of(profiles: ExtractionProfiles, scope: Scope) -> str | None:
    with suppress(NotFound):
        return profiles.get(scope, PREFIX).rules.custom_instructions or None
    return None


def _project(service: RunningService, scope: Scope, **more: Any) -> Mem0Project:
    """Return a namespace as a project; one that is no agent has no description and no date."""
    try:
        agent = service.agents.get(scope)
    except AgentNotFound:
        agent = None
    described = None if agent is None or agent.metadata is None else agent.metadata.get(DESCRIPTION)
    return Mem0Project(
        id=scope.namespace,
        project_id=scope.namespace,
        name=scope.namespace,
        description=described if isinstance(described, str) else None,
        created_at=optional_wire_time(None if agent is None else agent.created_at),
        **more,
    )
