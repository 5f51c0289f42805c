"""The way of a request to its work: its body is read, it waits for its turn, it is done, or given up in time.

A request that is given up at its deadline is still worked on by its thread, which nobody can stop; its place and its
body's memory are given back when that is through. An answer that is streamed keeps its place until it was taken. The
deadline counts from the last WINDOW_BYTES of the body, so that an upload is bounded by its progress.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import structlog
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from souvenir.api.admission import Lane, Refusal, Turn
from souvenir.api.bodies import BodyMemory, BodyProgress
from souvenir.api.observer import CLIENT_LEFT
from souvenir.deadlines import Deadline, deadline
from souvenir.errors import BodyTooSlow, DeadlineExceeded, Overloaded, ServiceClosing, SouvenirError

Handle = Callable[[Request], Coroutine[Any, Any, Response]]

_REASONS: dict[type[SouvenirError], Refusal] = {
    Overloaded: Refusal.BODY_MEMORY,
    BodyTooSlow: Refusal.BODY_SLOW,
    ServiceClosing: Refusal.CLOSING,
}

log = structlog.get_logger(__name__)


class HeldRequest(Request):
    """A request whose body is read once, against the memory that all bodies share."""

    body_bytes = 0

    async def hold_body(self, memory: BodyMemory) -> None:
        self._body = await memory.read(self.stream())
        self.body_bytes = len(self._body)

    def renew_with_body(self, until: Deadline) -> None:
        """Let the deadline count anew from every window of the body that `handle` reads, and from its end."""
        receive, progress = self._receive, BodyProgress()

        async def renewing() -> Message:
            message = await receive()
            if message["type"] == "http.request":
                filled = progress.came(len(message.get("body", b"")))
                if filled or not message.get("more_body", False):
                    until.renew()
            return message

        self._receive = renewing


class _Held:
    """What a request holds until it is through: its place, and the memory of its body."""

    def __init__(self, turn: Turn, memory: BodyMemory, body_bytes: int) -> None:
        self._turn = turn
        self._memory = memory
        self._body_bytes = body_bytes

    def end(self) -> None:
        self._turn.end()
        self._memory.release(self._body_bytes)

    def end_late(self, task: asyncio.Task[Response]) -> None:
        """The work that nobody waited for is through."""
        self.end()
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, SouvenirError):
            log.error("request_failed_after_its_deadline", exc_info=error)


class _HeldResponse(Response):
    """A streamed answer; what its request holds ends when it was taken, or cannot be any more."""

    def __init__(self, response: Response, held: _Held) -> None:
        self._response = response
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._response(scope, receive, send)
        finally:
            self._held.end()


async def answer(
    request: HeldRequest, handle: Handle, lane: Lane, memory: BodyMemory, *, holds_body: bool, timeout_s: float
) -> Response:
    """What `handle` answers when it is the request's turn.

    :param holds_body: Whether the body is read here, before the turn, and not by `handle`.
    :raises Overloaded: If there is no room for it. :raises BodyTooSlow: If its body is.
    :raises DeadlineExceeded: If it is not done in time.
    :raises ServiceClosing: If its turn has not come when the service is told to stop.
    """
    if holds_body and (left := await hold_body(request, lane, memory)) is not None:
        return left
    return await in_turn(request, handle, lane, memory, holds_body=holds_body, timeout_s=timeout_s)


async def hold_body(request: HeldRequest, lane: Lane, memory: BodyMemory) -> Response | None:
    """Read the body before the request's turn. None, or what is answered to a client that left.

    :param lane: Counts the refusal of a body. :raises Overloaded: If there is no room for it.
    :raises BodyTooSlow: If it is.
    """
    try:
        await request.hold_body(memory)
    except ClientDisconnect:
        return _left(lane)
    except SouvenirError as error:
        raise lane.refused(_REASONS[type(error)], error) from None
    return None


async def in_turn(
    request: HeldRequest, handle: Handle, lane: Lane, memory: BodyMemory, *, holds_body: bool, timeout_s: float
) -> Response:
    """What `answer` does once the body was read, or is left to `handle`."""
    with deadline(timeout_s) as until:
        try:
            turn = await lane.enter()
        except BaseException:
            memory.release(request.body_bytes)
            raise
        held = _Held(turn, memory, request.body_bytes)
        if holds_body and turn.waited and await request.is_disconnected():
            held.end()
            return _left(lane)
        if not holds_body:
            request.renew_with_body(until)
        return await _work(asyncio.create_task(handle(request)), held, lane, until)


async def _work(task: asyncio.Task[Response], held: _Held, lane: Lane, until: Deadline) -> Response:
    try:
        while not task.done() and until.left_s > 0:
            # Not wait_for: cancelling would let go of the thread, which works on.
            await asyncio.wait({task}, timeout=until.left_s)
    finally:
        if not task.done():
            task.add_done_callback(held.end_late)
    if not task.done():
        raise lane.refused(Refusal.DEADLINE, DeadlineExceeded(until.timeout_s))
    if task.exception() is None and isinstance(task.result(), StreamingResponse):
        return _HeldResponse(task.result(), held)
    held.end()
    return task.result()


def _left(lane: Lane) -> Response:
    lane.count(Refusal.LEFT)
    return Response(status_code=CLIENT_LEFT)
