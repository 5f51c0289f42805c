"""Mem0's webhooks: those of this service, under Mem0's names of events. A project is a namespace.

The name of a webhook is stored as the fragment of its address, which is never sent to the receiver.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Self
from urllib.parse import quote, unquote, urldefrag

from fastapi import Path, Request
from pydantic import BaseModel, Field, StringConstraints

from souvenir.api.fields import Clean, wire_time
from souvenir.compat.mem0.agents import project_scope
from souvenir.compat.mem0.models import Mem0Done, Strict
from souvenir.compat.mem0.routes import Mem0Routes, ProjectId
from souvenir.core.errors import InvalidRequest, NothingToDo, WebhookNotFound
from souvenir.core.types import Role, Scope
from souvenir.events.webhook_addresses import MAX_URL_CHARS
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import NOTHING, RunningService, Writer, caller_of
from souvenir.server.service import Service
from souvenir.store.admin.events import TYPES
from souvenir.store.admin.webhooks import Webhook

routes = Mem0Routes("mem0")

EVENTS: Mapping[str, str] = {
    "memory_add": "memory.added",
    "memory_update": "memory.updated",
    "memory_delete": "memory.deleted",
}
"""The names of this service by those of Mem0."""

_READ = {**EVENTS, "memory_categorize": "memory.updated"}
"""Categories are tags, and a change of tags is an update."""

_SHOWN = {ours: theirs for theirs, ours in EVENTS.items()}

Url = Annotated[str, StringConstraints(min_length=1, max_length=MAX_URL_CHARS), Clean]
Name = Annotated[str, StringConstraints(max_length=100), Clean]
EventTypes = Annotated[
    list[Annotated[str, StringConstraints(max_length=100), Clean]], Field(min_length=1, max_length=100)
]
WebhookId = Annotated[str, Clean, Path(min_length=1, max_length=100)]


class CreateWebhook(Strict):
    url: Url
    name: Name
    event_types: EventTypes


class UpdateWebhook(Strict):
    url: Url | None = None
    name: Name | None = None
    event_types: EventTypes | None = None


class Mem0Webhook(BaseModel):
    """`is_active` is false once deliveries ended; the reason is in `GET /webhooks`."""

    webhook_id: str
    name: str
    url: str
    event_types: list[str]
    project: str
    is_active: bool
    created_at: str

    @classmethod
    def of(cls, hook: Webhook, **more: str) -> Self:
        url, name = urldefrag(hook.url)
        return cls(
            webhook_id=hook.id,
            name=unquote(name),
            url=url,
            event_types=[_SHOWN.get(one, one) for one in hook.events or TYPES],
            project=hook.namespace,
            is_active=hook.disabled_at is None,
            created_at=wire_time(hook.created_at),
            **more,
        )


class CreatedMem0Webhook(Mem0Webhook):
    """The secret, with which messages are signed, is not shown again."""

    secret: str


@routes.get("/api/v1/webhooks/projects/{project}/", cost=CostClass.LIGHT, access=NOTHING)
def webhooks(project: ProjectId, scope: Writer, service: RunningService, request: Request) -> list[Mem0Webhook]:
    """List the webhooks of the key, or for an admin those of the namespace."""
    own = project_scope(request, project, Role.READ_WRITE)
    return [Mem0Webhook.of(one) for one in service.webhooks.list(own, all_actors=_sees_all(request))]


@routes.post("/api/v1/webhooks/projects/{project}/", cost=CostClass.LIGHT)
def create_webhook(
    project: ProjectId, body: CreateWebhook, scope: Writer, service: RunningService, request: Request
) -> CreatedMem0Webhook:
    """Send the events of a project to an address from now on."""
    own = project_scope(request, project, Role.READ_WRITE)
    hook = service.webhooks.create(own, _address(body.url, body.name), _types(body.event_types), None)
    service.audit.act(own, "webhook.create", hook.id)
    return CreatedMem0Webhook.of(hook, secret=hook.secret)


@routes.put("/api/v1/webhooks/{webhook_id}/", cost=CostClass.LIGHT)
def update_webhook(
    webhook_id: WebhookId, body: UpdateWebhook, scope: Writer, service: RunningService, request: Request
) -> Mem0Webhook:
    """Change the name, the address or the events of a webhook."""
    if body == UpdateWebhook():
        raise NothingToDo("Nothing to update; give name, url or event_types")
    own, seen = _scope_of(service, request, scope, webhook_id), _sees_all(request)
    before = next((one for one in service.webhooks.list(own, all_actors=seen) if one.id == webhook_id), None)
    if before is None:
        raise WebhookNotFound(webhook_id)
    shown = Mem0Webhook.of(before)
    url = _address(shown.url if body.url is None else body.url, shown.name if body.name is None else body.name)
    types = None if body.event_types is None else _types(body.event_types)
    after = service.webhooks.update(own, webhook_id, all_actors=seen, url=url, types=types)
    service.audit.act(own, "webhook.update", webhook_id)
    return Mem0Webhook.of(after)


@routes.delete("/api/v1/webhooks/{webhook_id}/", cost=CostClass.LIGHT)
def delete_webhook(webhook_id: WebhookId, scope: Writer, service: RunningService, request: Request) -> Mem0Done:
    """Delete a webhook and the log of its deliveries."""
    own = _scope_of(service, request, scope, webhook_id)
    service.webhooks.delete(own, webhook_id, all_actors=_sees_all(request))
    service.audit.act(own, "webhook.delete", webhook_id)
    return Mem0Done(message="Webhook deleted successfully")


def _sees_all(request: Request) -> bool:
    return caller_of(request).role is Role.ADMIN


def _scope_of(service: Service, request: Request, scope: Scope, webhook_id: str) -> Scope:
    """Return the scope in which a webhook is looked up by its id; an admin's key reaches every namespace."""
    caller = caller_of(request)
    if caller.role is not Role.ADMIN:
        return scope
    return caller.scope(Role.READ_WRITE, service.webhooks.namespace_of(webhook_id) or scope.namespace)


def _address(url: str, name: str) -> str:
    """Return the stored address, which includes the name.

    :raises InvalidRequest: If it is too long.
    """
    address = urldefrag(url).url + (f"#{quote(name, safe='')}" if name else "")
    if len(address) > MAX_URL_CHARS:
        raise InvalidRequest(f"url and name have more than {MAX_URL_CHARS:,} characters together; shorten one")
    return address


def _types(named: Sequence[str]) -> list[str]:
    """Return the types of this service; their own names are taken too, since lists show those that Mem0 has not.

    :raises InvalidRequest: If one is unknown.
    """
    for name in named:
        if name not in _READ and name not in TYPES:
            raise InvalidRequest(f"There are no events of the type {name!r}; the types are {', '.join(_READ)}")
    return [_READ.get(name, name) for name in named]
