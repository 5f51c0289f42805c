"""Admission control: requests of a cost class are processed up to a limit, queued, or refused at once.

A class has a number of places and a queue before them. The callers (`caller_of` names them: a key, or an address where
no key is needed) take turns by the time that their requests hold places (`souvenir.core.fair_order`), so a caller with
many connections delays another one by the requests that are being processed, not by those that it has queued. A caller
that holds no place need not even wait for those: some further places are reserved for such callers. A single
caller gets all places and all of the queue; while others wait it may queue an equal share.

The queue is no longer than what is served in about a second: more would wait for answers that their clients gave up on.
A request that finds it full is refused at once, with the time to come back. Health has no places that could be full.

A place is held until the work has really ended, even if the client disconnected or the deadline passed, since a
thread cannot be stopped; the work checks its deadline and ends soon. A streamed answer keeps its place until it was
read; a search gives its place up before it waits for a reader. Everything here runs on the event loop; `figures` may be
read from any thread.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import TypeVar

import structlog
from fastapi import Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

from souvenir.conversations.verification import MAX_READS
from souvenir.core.concurrency import Deadline, require_time, time_left
from souvenir.core.errors import DeadlineExceeded, Overloaded, ServiceClosing, SouvenirError
from souvenir.core.fair_order import FairOrder
from souvenir.core.settings import EmbedProvider, Settings
from souvenir.server.load_shedding import CLIENT_LEFT, BodyMemory, CostClass, Refusal

T = TypeVar("T")

WAITING_PER_PLACE = 16
"""Number of requests that may always wait per place, however quick they are."""

PATIENCE = 4
"""A request may wait at most this many times as long as it was expected to: an admitted request should be served, even
if the machine is briefly slow."""

REMOTE_PLACES_PER_CORE = 16
"""If another server embeds, a place mostly waits for it and uses no core."""

RETRY_AFTER_MAX_S = 60

RECENT_SHARE = 0.1
"""Weight of the newest request in the moving average of the service time."""

REFUSAL_PAUSE_S = 0.25
"""Delay of a refusal while several callers use the service: a client that retries at once would otherwise take their
time with requests that are all refused. The pause costs one timer."""

CONTENTION_S = 1.0
"""The service counts as used by several callers for this long after a request of another caller than before."""

WATCHED_AFTER_S = 0.25
"""Requests that take longer than this are watched for disconnected clients."""

SPARE_THREADS = 8
"""Limit for requests without places, and for answers that are still being sent; MAX_READS more wait for a reader."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PlaceFigures:
    """The current state and totals of a class. `service_s` is the moving average of the time that a place is held.

    `places` is the number available to one caller.
    """

    at_work: int
    places: int
    waiting: int
    waiting_max: int
    service_s: float
    admitted: int
    refused: Mapping[Refusal, int]


class Contention:
    """Tracks whether several callers use the service, across all cost classes."""

    def __init__(self) -> None:
        self.last_caller = ""
        self._until = 0.0

    def note(self, caller: str) -> None:
        """Record a request of another caller than the last one."""
        self.last_caller, self._until = caller, monotonic() + CONTENTION_S

    @property
    def is_present(self) -> bool:
        return monotonic() < self._until


@dataclass(slots=True)
class _Share:
    """The places and queued requests of one caller in a class."""

    at_work: int = 0
    waiting: deque[asyncio.Future[None]] = field(default_factory=deque)


class Places:
    """The places of one class and the queue before them.

    :param wait_s: A request that would probably wait longer is refused at once.
    """

    def __init__(self, cost: CostClass, places: int, wait_s: float, contention: Contention) -> None:
        self.cost = cost
        self._contention = contention
        self.free = places
        """Places available to every caller; negative if some reserved places are taken."""
        self._places = places
        self._reserved = max(1, places // 2)
        self.total = places + self._reserved
        self._wait_s = wait_s
        self._shares: dict[str, _Share] = {}
        self._order = FairOrder[str]()
        self._service_s = 0.0
        self._admitted = 0
        self._refused: Counter[Refusal] = Counter()
        self._closed = False

    async def enter(self, caller: str, memory: BodyMemory, body_bytes: int) -> Turn:
        """Wait for a place. The caller must end the returned turn.

        :param body_bytes: Held in `memory` for the request, until its turn ends or is refused.
        :raises Overloaded: If the queue is full, or the wait was too long.
        :raises ServiceClosing: If the service is stopping.
        """
        waits = False
        if caller != self._contention.last_caller:
            self._contention.note(caller)
        if self.free > 0 and not self._closed:
            self._take(caller)
        else:
            try:
                if (refusal := self.refusal(caller)) is not None:
                    raise refusal
                waits = await self._place(caller, PATIENCE * self._wait_s)
            except BaseException:
                memory.release(caller, body_bytes)
                raise
        self._admitted += 1
        return Turn(self, caller, memory, body_bytes, waits)

    async def run_part(self, caller: str, run: Callable[[], Awaitable[T]]) -> T:
        """Run one of several parts of a request, in its caller's turn among the requests of this class.

        :raises Overloaded: If its turn does not come before the deadline.
        :raises DeadlineExceeded: If the deadline of the request has passed.
        """
        await self._place(caller, time_left(RETRY_AFTER_MAX_S))
        began = monotonic()
        try:
            require_time()
            return await run()
        finally:
            self.leave(caller, monotonic() - began)

    async def require_space(self, caller: str) -> None:
        """:raises Overloaded: If a new request would wait too long."""
        if (refusal := self.refusal(caller)) is not None:
            await self.pause()
            raise refusal

    def refused(self, reason: Refusal, error: SouvenirError) -> SouvenirError:
        """Count a refusal of this class and return its error."""
        self.count(reason)
        return error

    def count(self, reason: Refusal) -> None:
        self._refused[reason] += 1

    def left(self) -> Response:
        """Count a disconnected client and return the response that it does not receive."""
        self.count(Refusal.LEFT)
        return Response(status_code=CLIENT_LEFT)

    def leave(self, caller: str, worked_s: float) -> None:
        """Give the place to the next request in turn."""
        weight = RECENT_SHARE if self._service_s else 1.0
        self._service_s += weight * (worked_s - self._service_s)
        self._order.charge(caller, worked_s)
        self._shares[caller].at_work -= 1
        self.free += 1
        self._forget_idle(caller)
        while (following := self._next_caller()) is not None:
            turn = self._shares[following].waiting.popleft()
            if turn.done():
                self._forget_idle(following)
                continue
            self._take(following)
            turn.set_result(None)

    def close(self) -> None:
        """Refuse waiting and new requests; those in process continue."""
        self._closed = True
        for caller, share in list(self._shares.items()):
            while share.waiting:
                turn = share.waiting.popleft()
                if not turn.done():
                    turn.set_exception(self.refused(Refusal.CLOSING, ServiceClosing()))
            self._forget_idle(caller)

    def figures(self) -> PlaceFigures:
        return PlaceFigures(
            self._places - self.free,
            self._places,
            sum(len(share.waiting) for share in list(self._shares.values())),
            WAITING_PER_PLACE * self._places,
            self._service_s,
            self._admitted,
            dict(self._refused),
        )

    def refusal(self, caller: str) -> Overloaded | None:
        """Count and return the error for a new request if it would wait too long."""
        if self._closed or self._may_enter(caller):
            return None
        own = self._shares.get(caller)
        waiting = 0 if own is None else len(own.waiting)
        # Callers take turns: no caller is served more often before this request than this caller.
        before = sum(min(len(share.waiting), waiting + 1) for share in self._shares.values() if share is not own)
        expected_s = (before + waiting + 1) * self._service_s / self._places
        callers = len(self._shares) + (own is None)
        if waiting < WAITING_PER_PLACE * self._places / callers and expected_s <= self._wait_s:
            return None
        self.count(Refusal.FULL)
        return self._overloaded(expected_s)

    async def pause(self) -> None:
        """Wait before a refusal is sent, if several callers use the service."""
        if self._contention.is_present:
            await asyncio.sleep(REFUSAL_PAUSE_S)

    def _may_enter(self, caller: str) -> bool:
        """Return whether a place is free for the caller: a shared one, or a reserved one if it holds none."""
        if self.free > 0:
            return True
        own = self._shares.get(caller)
        return self.free > -self._reserved and (own is None or not own.at_work)

    def _next_caller(self) -> str | None:
        if self.free <= -self._reserved:
            return None
        return self._order.first(
            caller for caller, share in self._shares.items() if share.waiting and self._may_enter(caller)
        )

    def _take(self, caller: str) -> None:
        share = self._shares.get(caller)
        if share is None:
            share = self._shares[caller] = _Share()
        share.at_work += 1
        self.free -= 1

    async def _place(self, caller: str, wait_s: float) -> bool:
        """Take a place, or wait for one; return whether it had to wait."""
        if self._closed:
            raise self.refused(Refusal.CLOSING, ServiceClosing())
        if self._may_enter(caller):
            self._take(caller)
            return False
        share = self._shares.get(caller)
        if share is None:
            share = self._shares[caller] = _Share()
        if not share.waiting:
            self._order.arrive(caller)
        loop = asyncio.get_running_loop()
        turn: asyncio.Future[None] = loop.create_future()
        share.waiting.append(turn)
        timer = loop.call_later(wait_s, self._give_up, caller, turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._withdraw(caller, turn)
            elif turn.exception() is None:
                self.leave(caller, self._service_s)
            raise
        finally:
            timer.cancel()
        return True

    def _give_up(self, caller: str, turn: asyncio.Future[None]) -> None:
        if not turn.done():
            self._withdraw(caller, turn)
            turn.set_exception(self.refused(Refusal.WAITED, self._overloaded(self._wait_s)))

    def _withdraw(self, caller: str, turn: asyncio.Future[None]) -> None:
        share = self._shares.get(caller)
        if share is not None and turn in share.waiting:
            share.waiting.remove(turn)
            self._forget_idle(caller)

    def _forget_idle(self, caller: str) -> None:
        share = self._shares[caller]
        if not share.at_work and not share.waiting:
            del self._shares[caller]

    def _overloaded(self, expected_s: float) -> Overloaded:
        retry_after_s = min(RETRY_AFTER_MAX_S, max(1, math.ceil(expected_s)))
        return Overloaded(
            f"Too many requests of the class {self.cost} are waiting; try again in {retry_after_s} s",
            retry_after_s=retry_after_s,
        )


@dataclass(slots=True, eq=False)
class Turn:
    """The resources of a request until it is done: its place, and the memory of its body.

    `waited` says whether it had to wait.
    """

    _places: Places
    _caller: str
    _memory: BodyMemory
    _body_bytes: int
    waited: bool
    _began: float = field(default_factory=monotonic)
    _over: bool = False

    async def answer(
        self, work: asyncio.Future[Response], until: Deadline, disconnected: Callable[[], Awaitable[None]]
    ) -> Response:
        """Return the response of the work; the turn ends then, or when a streamed response was sent.

        If the client disconnects first, or the deadline passes, the work ends at its next deadline check, and
        keeps its place until then.

        :param disconnected: Returns when the client has disconnected.
        :raises DeadlineExceeded: If the work is not done in time.
        """
        gone: asyncio.Future[None] | None = None
        try:
            # Not wait_for: cancelling would release the thread, which continues.
            await asyncio.wait((work,), timeout=min(until.timeout_s, WATCHED_AFTER_S))
            if not work.done():
                gone = asyncio.ensure_future(disconnected())
            while not work.done() and (gone is None or not gone.done()) and (left_s := until.left_s) > 0:
                waited_for = (work,) if gone is None else (work, gone)
                await asyncio.wait(waited_for, timeout=left_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            has_left = gone is not None and gone.done()
            if gone is not None:
                gone.cancel()
            if not work.done():
                until.end()
                work.add_done_callback(self._end_late)
        if not work.done():
            if has_left:
                return self._places.left()
            raise self._places.refused(Refusal.DEADLINE, DeadlineExceeded(until.timeout_s))
        if work.exception() is None and isinstance(response := work.result(), StreamingResponse):
            return _HeldResponse(response, self)
        self.end()
        return work.result()

    def end(self) -> None:
        """Give the place to the next request; a second call does nothing."""
        if not self._over:
            self._over = True
            self._memory.release(self._caller, self._body_bytes)
            self._places.leave(self._caller, monotonic() - self._began)

    def _end_late(self, work: asyncio.Future[Response]) -> None:
        self.end()
        error = None if work.cancelled() else work.exception()
        if error is not None and not isinstance(error, SouvenirError):
            log.error("request_failed_after_its_deadline", exc_info=error)


class _HeldResponse(Response):
    """A streamed answer; its turn ends when it was read or can no longer be."""

    def __init__(self, response: Response, turn: Turn) -> None:
        self._response = response
        self._turn = turn

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._response(scope, receive, send)
        finally:
            self._turn.end()


class Admission:
    """The places of all classes but health."""

    def __init__(self, settings: Settings) -> None:
        cores = os.cpu_count() or 1
        embedding = (1 if settings.embed_provider is EmbedProvider.ONNX else REMOTE_PLACES_PER_CORE) * cores
        numbers = {
            CostClass.LIGHT: settings.max_reads or max(8, 2 * cores),
            CostClass.SEARCH: settings.max_searches or embedding,
            CostClass.WRITE: settings.max_writes or embedding,
            CostClass.LONG: settings.max_long,
        }
        # A long request takes many seconds: a shorter wait would never suffice.
        waits = {CostClass.LONG: settings.request_timeout_s / (2 * PATIENCE)}
        contention = Contention()
        self.places: Mapping[CostClass, Places] = {
            cost: Places(cost, number, waits.get(cost, settings.queue_wait_s), contention)
            for cost, number in numbers.items()
        }
        self.threads = sum(places.total for places in self.places.values()) + MAX_READS + SPARE_THREADS

    def close(self) -> None:
        """Refuse every request without a place with 503 from now on."""
        for places in self.places.values():
            places.close()

    def figures(self) -> Mapping[CostClass, PlaceFigures]:
        return {cost: places.figures() for cost, places in self.places.items()}
