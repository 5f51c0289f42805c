"""Webhooks: events of the feed, sent to an address, signed and with retries."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path, Query
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from souvenir.api.fields import Clean, optional_wire_time, wire_time
from souvenir.api.jobs import AllActors
from souvenir.events.webhook_addresses import MAX_URL_CHARS
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import NOTHING, RunningService, Writer
from souvenir.server.routing import Routes
from souvenir.store.admin.webhooks import LOGGED, Delivery, DeliveryStatus, Webhook

routes = Routes("webhooks")

_ID = "0d7f6a3c5b2e4f1a9c8d7e6f5a4b3c2d"
_URL = "https://hooks.example.com/memories"

_WebhookId = Annotated[
    str, Clean, Path(min_length=1, max_length=100, description="The id of a webhook.", examples=[_ID])
]


class WebhookRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"url": _URL, "events": ["memory.added"]}]})

    url: Annotated[str, StringConstraints(min_length=1, max_length=MAX_URL_CHARS), Clean] = Field(
        description="An HTTP or HTTPS address; private ones need WEBHOOK_ALLOWED_HOSTS. It is checked at each delivery."
    )
    events: list[Annotated[str, StringConstraints(max_length=100), Clean]] | None = Field(
        default=None, max_length=100, description="Types of events, such as `memory.added`; null or empty for all."
    )
    secret: Annotated[str, StringConstraints(max_length=200), Clean] | None = Field(
        default=None, description="`whsec_` and 24 to 64 bytes in base64; a new one by default."
    )


class WebhookRecord(BaseModel):
    id: str = Field(examples=[_ID])
    url: str = Field(examples=[_URL])
    events: list[str] | None = Field(description="Types of events; null for all.", examples=[["memory.added"]])
    created_at: str = Field(examples=["2025-04-02T09:30:00.000000+00:00"])
    disabled_at: str | None = Field(description="When deliveries ended; null as long as they continue.")
    reason: str | None = Field(description="The reason why it was disabled.")

    @classmethod
    def of(cls, hook: Webhook) -> WebhookRecord:
        return cls(
            id=hook.id,
            url=hook.url,
            events=list(hook.events) or None,
            created_at=wire_time(hook.created_at),
            disabled_at=optional_wire_time(hook.disabled_at),
            reason=hook.reason,
        )


class CreatedWebhook(WebhookRecord):
    secret: str = Field(
        description="The key of the signatures. It is not shown again.", examples=["whsec_c2l4dGVlbiByYW5kb20gYnl0ZXM="]
    )


class WebhooksResponse(BaseModel):
    webhooks: list[WebhookRecord] = Field(description="Oldest first.")
    count: int


class DeletedWebhook(BaseModel):
    deleted: bool


class DeliveryRecord(BaseModel):
    event_id: int
    status: DeliveryStatus = Field(description="`waiting` for the next attempt, `delivered`, or `failed` for good.")
    attempts: int
    response_status: int | None = Field(description="The status of the last answer.")
    error: str | None = Field(description="The reason why the last attempt failed.")
    next_attempt_at: str | None
    created_at: str = Field(examples=["2025-04-02T09:30:00.000000+00:00"])
    finished_at: str | None

    @classmethod
    def of(cls, delivery: Delivery) -> DeliveryRecord:
        return cls(
            event_id=delivery.event_id,
            status=delivery.status,
            attempts=delivery.attempts,
            response_status=delivery.response_status,
            error=delivery.error,
            next_attempt_at=optional_wire_time(delivery.next_attempt_at),
            created_at=wire_time(delivery.created_at),
            finished_at=optional_wire_time(delivery.finished_at),
        )


class DeliveriesResponse(BaseModel):
    deliveries: list[DeliveryRecord] = Field(description="Newest first.")
    count: int


@routes.post("/webhooks", summary="Register a webhook", cost=CostClass.LIGHT, sdk="webhooks.create", errors=[409])
def create_webhook(body: WebhookRequest, scope: Writer, service: RunningService) -> CreatedWebhook:
    """Send the events that the key may see to an address from now on, signed with a secret that is shown only here."""
    hook = service.webhooks.create(scope, body.url, body.events or [], body.secret)
    service.audit.act(scope, "webhook.create", hook.id)
    return CreatedWebhook(**WebhookRecord.of(hook).model_dump(), secret=hook.secret)


@routes.get("/webhooks", summary="List webhooks", cost=CostClass.LIGHT, access=NOTHING, sdk="webhooks.list")
def list_webhooks(scope: Writer, service: RunningService, all_actors: AllActors) -> WebhooksResponse:
    """List the webhooks of the key, or for an admin those of the namespace."""
    found = [WebhookRecord.of(one) for one in service.webhooks.list(scope, all_actors=all_actors)]
    return WebhooksResponse(webhooks=found, count=len(found))


@routes.delete(
    "/webhooks/{webhook_id}", summary="Delete a webhook", cost=CostClass.LIGHT, sdk="webhooks.delete", errors=[404]
)
def delete_webhook(
    webhook_id: _WebhookId, scope: Writer, service: RunningService, all_actors: AllActors
) -> DeletedWebhook:
    """Delete a webhook and the log of its deliveries."""
    service.webhooks.delete(scope, webhook_id, all_actors=all_actors)
    service.audit.act(scope, "webhook.delete", webhook_id)
    return DeletedWebhook(deleted=True)


@routes.get(
    "/webhooks/{webhook_id}/deliveries",
    summary="List deliveries of a webhook",
    cost=CostClass.LIGHT,
    access=NOTHING,
    sdk="webhooks.deliveries",
    errors=[404],
)
def list_deliveries(
    webhook_id: _WebhookId,
    scope: Writer,
    service: RunningService,
    all_actors: AllActors,
    limit: Annotated[int, Query(ge=1, le=LOGGED, description="Maximum number of items.")] = 50,
) -> DeliveriesResponse:
    """List the last deliveries of a webhook, with the errors of failed ones."""
    found = service.webhooks.deliveries(scope, webhook_id, all_actors=all_actors, limit=limit)
    return DeliveriesResponse(deliveries=[DeliveryRecord.of(one) for one in found], count=len(found))
