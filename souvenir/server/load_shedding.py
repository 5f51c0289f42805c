"""Load shedding: how many requests of a cost class are at work, how many wait, and which are refused at once.

A class has a lane: some places at work and a queue before them, first come first served. The queue is no longer than
what is served in about a second: more would wait for answers that their clients gave up on, and the service would do
the work all the same. A request that finds it full is refused at once, with the time to come back. Health has no lane
that could be full.

A place is held until the work is really done, also when the client left or its deadline passed: a thread cannot be
stopped. A streamed answer keeps its place until it was taken. Bodies are read before the turn, within a memory that all
of them share; one that is streamed through counts only against its size. Everything here runs on the event loop;
`figures` may be read from any thread.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections import Counter, deque
from collections.abc import Callable, Mapping
from contextvars import Context, copy_context
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from queue import SimpleQueue
from threading import Thread
from time import monotonic
from typing import Any

import structlog
from fastapi import Response
from fastapi.responses import StreamingResponse
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from souvenir.core.concurrency import Deadline
from souvenir.core.errors import (
    BodyTooSlow,
    DeadlineExceeded,
    Overloaded,
    PayloadTooLarge,
    ServiceClosing,
    SouvenirError,
)
from souvenir.core.settings import EmbedProvider, Settings

WINDOW_BYTES = 64 * 1024
"""So much more of a body, or its end, must come within each window: what came fast before buys no time to drip."""

WINDOW_S = 16.0

MIN_BYTES_PER_S = int(WINDOW_BYTES / WINDOW_S)
"""What that comes to: a phone at the edge of its network sends it."""


WAITING_PER_PLACE = 16
"""Requests that may wait for each place at work, however quick they are."""

PATIENCE = 4
"""A request may wait at most this many times as long as it was expected to: an admitted request should be served, also
when the machine is slow for a moment."""

REMOTE_PLACES_PER_CORE = 16
"""Where another server embeds, a place waits for it most of its time and uses no core."""

RETRY_AFTER_MAX_S = 60

RECENT_SHARE = 0.1
"""Weight of the newest request in the mean of how long one takes."""

SPARE_THREADS = 8
"""For requests without a lane, and answers that are still being sent."""

CLIENT_LEFT = 499
"""The status that is logged for a request that ended without an answer."""

log = structlog.get_logger(__name__)


class CostClass(StrEnum):
    """What a request costs; each class has its own places and its own queue."""

    HEALTH = "health"  # answered under any load
    LIGHT = "light"  # a look at a few rows
    SEARCH = "search"  # the model and the arrays
    WRITE = "write"  # the model, the disk and the arrays
    LONG = "long"  # whole tables, whole files


class Refusal(StrEnum):
    """Why a request was not done."""

    FULL = "full"  # more would have waited than are served in time
    WAITED = "waited"  # its turn did not come in time
    LEFT = "left"  # its client was gone when its turn came
    CLOSING = "closing"  # the service is stopping
    DEADLINE = "deadline"  # it was not done in time; its place is held until it is
    BODY_MEMORY = "body_memory"  # the bodies of others fill the memory for them
    BODY_SLOW = "body_slow"  # its body did not arrive in time


class BodyProgress:
    """Counts a body as it comes, in windows of WINDOW_BYTES."""

    __slots__ = ("_window_bytes",)

    def __init__(self) -> None:
        self._window_bytes = 0

    def came(self, size: int) -> bool:
        """Whether these bytes fill the window; then the next one begins."""
        self._window_bytes += size
        if self._window_bytes < WINDOW_BYTES:
            return False
        self._window_bytes = 0
        return True


@dataclass(frozen=True, slots=True)
class LaneFigures:
    """A class now, and since the start. `service_s` is the recent mean from the turn to the answer."""

    at_work: int
    places: int
    waiting: int
    waiting_max: int
    service_s: float
    admitted: int
    refused: Mapping[Refusal, int]


class BodyMemory:
    """The bytes of all bodies that are held; a body holds what has arrived of it, not what it announces."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._arriving: set[asyncio.Timeout] = set()
        self._closed = False
        self.held_bytes = 0

    async def read(self, receive: Receive, max_bytes: int) -> bytes:
        """The whole body; its length must be given back with `release`.

        :raises PayloadTooLarge: If it is larger than that.
        :raises Overloaded: If the bodies of others leave no memory for it.
        :raises BodyTooSlow: If it comes too slowly.
        :raises ServiceClosing: If the service stops before it is there.
        :raises ClientDisconnect: If its client leaves.
        """
        loop = asyncio.get_running_loop()
        limit = asyncio.timeout_at(loop.time() + WINDOW_S)
        parts: list[bytes] = []
        size = window_bytes = 0
        self._arriving.add(limit)
        try:
            async with limit:
                more = True
                while more:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientDisconnect
                    part, more = message.get("body", b""), message.get("more_body", False)
                    if size + len(part) > max_bytes:
                        raise PayloadTooLarge(max_bytes)
                    if self._closed:
                        raise ServiceClosing
                    if self.held_bytes + len(part) > self._max_bytes:
                        raise Overloaded("The bodies of other requests fill the memory for them; try again in a moment")
                    self.held_bytes += len(part)
                    size += len(part)
                    window_bytes += len(part)
                    parts.append(part)
                    if window_bytes >= WINDOW_BYTES:
                        window_bytes = 0
                        limit.reschedule(loop.time() + WINDOW_S)
        except BaseException as error:
            self.release(size)
            if isinstance(error, TimeoutError):
                raise (ServiceClosing() if self._closed else BodyTooSlow(MIN_BYTES_PER_S)) from None
            raise
        finally:
            self._arriving.discard(limit)
        return b"".join(parts)

    def release(self, size: int) -> None:
        self.held_bytes -= size

    def close(self) -> None:
        """Refuse the bodies that are still coming."""
        self._closed = True
        now = asyncio.get_running_loop().time()
        for limit in self._arriving:
            limit.reschedule(now)


class Lane:
    """The places of one class and the queue before them.

    :param wait_s: A request that would probably wait longer is refused at once.
    """

    def __init__(self, cost: CostClass, places: int, wait_s: float) -> None:
        self.cost = cost
        self._places = places
        self._wait_s = wait_s
        self._at_work = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._service_s = 0.0
        self._admitted = 0
        self._refused: Counter[Refusal] = Counter()
        self._closed = False

    async def enter(self, memory: BodyMemory, body_bytes: int) -> Turn:
        """Wait for a place. The turn that is returned must be ended.

        :param body_bytes: Held in `memory` for the request, until its turn ends or is refused.
        :raises Overloaded: If the queue is full, or the wait was too long.
        :raises ServiceClosing: If the service is stopping.
        """
        waits = self._at_work >= self._places
        if waits or self._closed:
            try:
                await self._queue()
            except BaseException:
                memory.release(body_bytes)
                raise
        else:
            self._at_work += 1
        self._admitted += 1
        return Turn(self, memory, body_bytes, waited=waits)

    def refused(self, reason: Refusal, error: SouvenirError) -> SouvenirError:
        """Count a refusal of this class and return its error."""
        self.count(reason)
        return error

    def count(self, reason: Refusal) -> None:
        self._refused[reason] += 1

    def left(self) -> Response:
        """Count a client that left; what is answered to it."""
        self.count(Refusal.LEFT)
        return Response(status_code=CLIENT_LEFT)

    def leave(self, worked_s: float) -> None:
        """The next in the queue takes the place over."""
        share = RECENT_SHARE if self._service_s else 1.0
        self._service_s += share * (worked_s - self._service_s)
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._at_work -= 1

    def close(self) -> None:
        """Refuse the requests that wait or come; those at work go on."""
        self._closed = True
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_exception(self.refused(Refusal.CLOSING, ServiceClosing()))

    def figures(self) -> LaneFigures:
        return LaneFigures(
            self._at_work,
            self._places,
            len(self._waiting),
            WAITING_PER_PLACE * self._places,
            self._service_s,
            self._admitted,
            dict(self._refused),
        )

    def refusal(self) -> Overloaded | None:
        """The error for a request that comes now, if it would wait too long; counted."""
        if self._at_work < self._places or self._closed:
            return None
        expected_s = (len(self._waiting) + 1) * self._service_s / self._places
        if len(self._waiting) < WAITING_PER_PLACE * self._places and expected_s <= self._wait_s:
            return None
        self.count(Refusal.FULL)
        return self._overloaded(expected_s)

    async def _queue(self) -> None:
        if self._closed:
            raise self.refused(Refusal.CLOSING, ServiceClosing())
        if (refusal := self.refusal()) is not None:
            raise refusal
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        timer = loop.call_later(PATIENCE * self._wait_s, self._give_up, turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self.leave(self._service_s)
            raise
        finally:
            timer.cancel()

    def _give_up(self, turn: asyncio.Future[None]) -> None:
        if not turn.done():
            self._waiting.remove(turn)
            turn.set_exception(self.refused(Refusal.WAITED, self._overloaded(self._wait_s)))

    def _overloaded(self, expected_s: float) -> Overloaded:
        retry_after_s = min(RETRY_AFTER_MAX_S, max(1, math.ceil(expected_s)))
        return Overloaded(
            f"Too many requests of the class {self.cost} are waiting; try again in {retry_after_s} s",
            retry_after_s=retry_after_s,
        )


class Turn:
    """What a request holds until it is done: its place, and the memory of its body.

    `waited` says whether others went first.
    """

    __slots__ = ("_began", "_body_bytes", "_lane", "_memory", "_over", "waited")

    def __init__(self, lane: Lane, memory: BodyMemory, body_bytes: int, *, waited: bool) -> None:
        self._lane = lane
        self._memory = memory
        self._body_bytes = body_bytes
        self._over = False
        self.waited = waited
        self._began = monotonic()

    async def answer(self, work: asyncio.Future[Response], until: Deadline) -> Response:
        """The response that the work makes; then, or when it was sent if it is streamed, the turn ends.

        :raises DeadlineExceeded: If the work is not done in time. It goes on and keeps its place.
        """
        try:
            while not work.done() and (left_s := until.at - monotonic()) > 0:
                # Not wait_for: cancelling would let go of the thread, which goes on.
                await asyncio.wait((work,), timeout=left_s)
        finally:
            if not work.done():
                work.add_done_callback(self._end_late)
        if not work.done():
            raise self._lane.refused(Refusal.DEADLINE, DeadlineExceeded(until.timeout_s))
        if work.exception() is None and isinstance(response := work.result(), StreamingResponse):
            return _HeldResponse(response, self)
        self.end()
        return work.result()

    def end(self) -> None:
        """Give the place to the next request; a second call does nothing."""
        if not self._over:
            self._over = True
            self._memory.release(self._body_bytes)
            self._lane.leave(monotonic() - self._began)

    def _end_late(self, work: asyncio.Future[Response]) -> None:
        self.end()
        error = None if work.cancelled() else work.exception()
        if error is not None and not isinstance(error, SouvenirError):
            log.error("request_failed_after_its_deadline", exc_info=error)


class _HeldResponse(Response):
    """A streamed answer; its turn ends when it was taken, or cannot be any more."""

    def __init__(self, response: Response, turn: Turn) -> None:
        self._response = response
        self._turn = turn

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._response(scope, receive, send)
        finally:
            self._turn.end()


_Task = tuple["asyncio.Future[Any]", Context, Callable[..., Any], tuple[Any, ...]]


class WorkerThreads:
    """The threads that the functions of routes run on: at most `limit`, started when they are first needed.

    Daemons, unlike those of `concurrent.futures`: a request that is still at work does not keep the process alive.
    Passing work to them and back takes a third of the CPU that it takes with anyio. `run` is for the event loop only.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._started = 0
        self._unfinished = 0

    def run(self, function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        """The result to come of a function that a thread calls in the context of the caller. It cannot be cancelled."""
        if self._unfinished >= self._started < self._limit:
            self._started += 1
            Thread(target=self._work, name=f"souvenir-request-{self._started}", daemon=True).start()
        self._unfinished += 1
        result: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._tasks.put((result, copy_context(), function, arguments))
        return result

    def close(self) -> None:
        """Let the threads end when they have nothing to do."""
        for _ in range(self._started):
            self._tasks.put(None)

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            result, context, function, arguments = task
            task = None
            try:
                done = partial(self._finish, result, context.run(function, *arguments), None)
            except BaseException as error:  # noqa: BLE001  # the boundary of a thread: the request raises it
                done = partial(self._finish, result, None, error)
            try:
                result.get_loop().call_soon_threadsafe(done)
            except RuntimeError:  # the event loop was closed: nothing waits any more
                return
            # A thread that waits for work holds on to nothing of the last one.
            del result, context, function, arguments, done

    def _finish(self, result: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
        self._unfinished -= 1
        if result.cancelled():
            return
        if error is None:
            result.set_result(value)
        else:
            result.set_exception(error)


class Admission:
    """The lanes of all classes but health."""

    def __init__(self, settings: Settings) -> None:
        cores = os.cpu_count() or 1
        embedding = (1 if settings.embed_provider is EmbedProvider.ONNX else REMOTE_PLACES_PER_CORE) * cores
        places = {
            CostClass.LIGHT: settings.max_reads or max(8, 2 * cores),
            CostClass.SEARCH: settings.max_searches or embedding,
            CostClass.WRITE: settings.max_writes or embedding,
            CostClass.LONG: settings.max_long,
        }
        # A long one takes many seconds: none could be waited for in less.
        waits = {CostClass.LONG: settings.request_timeout_s / (2 * PATIENCE)}
        self.threads = sum(places.values()) + SPARE_THREADS
        self.lanes: Mapping[CostClass, Lane] = {
            cost: Lane(cost, number, waits.get(cost, settings.queue_wait_s)) for cost, number in places.items()
        }

    def close(self) -> None:
        """From now on every request that is not at work yet is refused with 503."""
        for lane in self.lanes.values():
            lane.close()

    def figures(self) -> Mapping[CostClass, LaneFigures]:
        return {cost: lane.figures() for cost, lane in self.lanes.items()}
