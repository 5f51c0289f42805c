"""Events: the last changes, and a stream of new ones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from functools import partial
from typing import Annotated, Any

import structlog
from fastapi import Header, Query, Request, Response
from pydantic import BaseModel, Field
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from souvenir.api.fields import wire_time
from souvenir.core.errors import InvalidRequest, SouvenirError
from souvenir.core.types import UNLIMITED, Role, Scope
from souvenir.events.feed import filter_of
from souvenir.events.streams import EventStreams
from souvenir.server.load_shedding import CostClass
from souvenir.server.middleware import ANSWERED_AT
from souvenir.server.request_guards import NOTHING, Reader, RunningService, charged_caller, sent_key
from souvenir.server.routing import Routes
from souvenir.server.service import Service
from souvenir.store.admin.events import TYPES, Event, EventFilter

routes = Routes("events")

SERVER_SENT_EVENTS = "text/event-stream"
CLOSING_S = 1.0
"""Time that a stream has to end by itself when the service stops."""

MAX_ID = 2**63 - 1

log = structlog.get_logger(__name__)

_EventType = Annotated[
    str | None, Query(max_length=50, description="Only events of this type.", examples=["memory.added"])
]
_EXAMPLE = (
    "retry: 5000\nid: 41\n\nid: 42\nevent: memory.added\n"
    'data: {"id": 7, "source": "notes", "action": "add", "actor": "api-key", '
    '"timestamp": "2025-04-02T09:30:00.000000+00:00"}\n\n'
)


class EventRecord(BaseModel):
    id: int = Field(description="Grows with every event, and is never used twice.", examples=[42])
    type: str = Field(examples=["memory.added"])
    timestamp: str = Field(examples=["2025-04-02T09:30:00.000000+00:00"])
    data: dict[str, Any] = Field(
        description="Ids and kinds, and never stored text.",
        examples=[{"id": 7, "source": "notes", "action": "add", "actor": "api-key"}],
    )

    @classmethod
    def of(cls, event: Event) -> EventRecord:
        return cls(id=event.id, type=event.type, timestamp=wire_time(event.at), data=dict(event.data))


class EventsResponse(BaseModel):
    events: list[EventRecord] = Field(description="In the order of the changes, the newest last.")
    count: int


@routes.get("/events/recent", summary="List recent events", cost=CostClass.LIGHT, access=NOTHING, sdk="events.recent")
def recent_events(
    request: Request,
    scope: Reader,
    service: RunningService,
    event_type: _EventType = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="Maximum number of events.")] = 50,
) -> EventsResponse:
    """List the last changes of the namespace that the key may see."""
    chosen = _visible(request, service, scope, event_type)
    records = [EventRecord.of(event) for event in service.events.recent(scope.namespace, limit=limit, chosen=chosen)]
    return EventsResponse(events=records, count=len(records))


@routes.get(
    "/events/stream",
    summary="Stream events",
    cost=CostClass.LIGHT,
    access=NOTHING,
    sdk="events.stream",
    responses={
        200: {
            "description": "Server-sent events. The event `events.lost` says that events after the last known one are "
            "not kept: load everything again.",
            "content": {SERVER_SENT_EVENTS: {"schema": {"type": "string"}, "example": _EXAMPLE}},
        },
    },
    response_class=Response,
)
def stream_events(
    request: Request,
    scope: Reader,
    service: RunningService,
    event_type: _EventType = None,
    last_event_id: Annotated[
        int | None,
        Query(
            ge=0,
            le=MAX_ID,
            description="Begin with the events after this one; 0 begins with the oldest one that is kept. The header "
            "`Last-Event-ID`, which browsers send when they connect again, has precedence.",
        ),
    ] = None,
    last_event_id_header: Annotated[
        int | None,
        Header(
            alias="Last-Event-ID",
            ge=0,
            le=MAX_ID,
            include_in_schema=False,
        ),
    ] = None,
) -> Response:
    """Stream the changes of the namespace that the key may see, from now on or from the last known event on."""
    check = partial(_visible, request, service, scope, event_type)
    check()
    after = last_event_id if last_event_id_header is None else last_event_id_header
    messages = service.streams.messages(charged_caller(request), scope.namespace, check, after)
    return EventStream(messages, service)


def _visible(request: Request, service: Service, scope: Scope, event_type: str | None) -> EventFilter:
    """Return the filter of what the caller may see now.

    :raises InvalidRequest: If there is no such type. :raises Unauthorized: If the key was revoked.
    :raises Forbidden: If it is now for another namespace.
    """
    if event_type is not None and event_type not in TYPES:
        raise InvalidRequest(f"There is no event type {event_type!r}; there are {', '.join(TYPES)}")
    caller = service.authenticator.reauthenticate(sent_key(request.scope["state"]["headers"]))
    now = caller.scope(Role.READ_ONLY, scope.namespace)
    levels = UNLIMITED if caller.role is Role.ADMIN else service.agents.access(now)
    all_actors = caller.role is Role.ADMIN and now.sources is None
    return filter_of(now, levels, all_actors=all_actors, event_type=event_type)


class EventStream(Response):
    """An answer without an end. It holds no place, is no active request, and ends when the service stops."""

    def __init__(self, messages: AsyncGenerator[bytes], service: Service) -> None:
        super().__init__(media_type=SERVER_SENT_EVENTS)
        del self.headers["content-length"]
        self.headers["Cache-Control"] = "no-store"
        # Proxies would collect events until they have a buffer full.
        self.headers["X-Accel-Buffering"] = "no"
        self._messages = messages
        self._service = service

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        first = await anext(self._messages)
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        scope["state"][ANSWERED_AT] = time.perf_counter()
        metrics = self._service.metrics
        metrics.active -= 1
        try:
            await self._until_left(first, receive, send, self._service.streams)
        finally:
            metrics.active += 1

    async def _until_left(self, first: bytes, receive: Receive, send: Send, streams: EventStreams) -> None:
        """Send messages until the stream ends, the client disconnects, or the service stops."""
        sending = asyncio.ensure_future(self._send(first, send))
        waiting = [asyncio.ensure_future(_disconnected(receive)), asyncio.ensure_future(streams.closing.wait())]
        try:
            await asyncio.wait([sending, *waiting], return_when=asyncio.FIRST_COMPLETED)
            if streams.closing.is_set():
                await asyncio.wait([sending], timeout=CLOSING_S)
        finally:
            for task in (sending, *waiting):
                task.cancel()
            ended, *_ = await asyncio.gather(sending, *waiting, return_exceptions=True)
        if isinstance(ended, SouvenirError):
            log.info("event_stream_ended", reason=ended.code)
        elif isinstance(ended, Exception):
            raise ended

    async def _send(self, first: bytes, send: Send) -> None:
        await send({"type": "http.response.body", "body": first, "more_body": True})
        try:
            async for message in self._messages:
                await send({"type": "http.response.body", "body": message, "more_body": True})
        finally:
            await self._messages.aclose()
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
