"""Load shedding: cost classes, reasons of refusals, the memory for bodies, and the threads of requests.

`souvenir.server.admission` decides which requests are processed. Bodies are read before a request gets its place,
within a shared memory limit; one that is streamed through counts only against its size. Everything here but
`WorkerThreads` runs on the event loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from contextvars import Context, copy_context
from enum import StrEnum
from functools import partial
from queue import SimpleQueue
from threading import Thread
from types import MappingProxyType
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from souvenir.core.errors import (
    BodyTooSlow,
    Overloaded,
    PayloadTooLarge,
    ServiceClosing,
)

WINDOW_BYTES = 64 * 1024
"""This much of a body, or its end, must arrive within each window; early bytes do not extend later windows."""

WINDOW_S = 16.0

MIN_BYTES_PER_S = int(WINDOW_BYTES / WINDOW_S)
"""The resulting rate; a phone on a weak connection achieves it."""

CALLER_SHARE = 0.75
"""Maximum share of the memory for bodies that one caller may hold, except for a single body."""

CLIENT_LEFT = 499
"""The logged status of a request that ended without an answer."""


class CostClass(StrEnum):
    """The cost class of a request; each class has separate places and a separate queue."""

    HEALTH = "health"  # answered under any load
    LIGHT = "light"  # reads or writes a few rows
    SEARCH = "search"  # uses the model and the arrays
    WRITE = "write"  # uses the model, the disk and the arrays
    LONG = "long"  # processes whole tables or files
    PROXY = "proxy"  # waits for a vendor's model; its own parts are searches and writes


MAX_BODY_BYTES_OF: Mapping[CostClass, int] = MappingProxyType(
    {CostClass.LIGHT: 2 * 1024 * 1024, CostClass.SEARCH: 2 * 1024 * 1024, CostClass.WRITE: 8 * 1024 * 1024}
)
"""Maximum size of a body in the classes that take no batches; JSON is parsed on the event loop, which it blocks."""


class Refusal(StrEnum):
    """Why a request was refused or not completed."""

    FULL = "full"  # the queue is full
    WAITED = "waited"  # it waited too long
    LEFT = "left"  # its client had disconnected before its turn
    CLOSING = "closing"  # the service is stopping
    DEADLINE = "deadline"  # it exceeded its deadline; its place is held until its work ends
    BODY_MEMORY = "body_memory"  # other bodies fill the memory limit
    BODY_SLOW = "body_slow"  # its body arrived too slowly


class BodyProgress:
    """Measures the progress of a body in windows of WINDOW_BYTES."""

    __slots__ = ("_window_bytes",)

    def __init__(self) -> None:
        self._window_bytes = 0

    def came(self, size: int) -> bool:
        """Return whether these bytes complete the window, and then start the next one."""
        self._window_bytes += size
        if self._window_bytes < WINDOW_BYTES:
            return False
        self._window_bytes = 0
        return True


class BodyMemory:
    """The memory of all buffered bodies; a body counts with the bytes that have arrived, not with its announced length.

    One caller may hold CALLER_SHARE of it, so that others can always send a body.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._arriving: set[asyncio.Timeout] = set()
        self._closed = False
        self._held_by: Counter[str] = Counter()
        self.held_bytes = 0

    async def read(self, receive: Receive, max_bytes: int, caller: str) -> bytes:
        """Read the whole body; its length must be returned with `release`.

        :raises PayloadTooLarge: If it is larger than `max_bytes`.
        :raises Overloaded: If the bodies of others leave no memory for it.
        :raises BodyTooSlow: If it arrives too slowly.
        :raises ServiceClosing: If the service stops before it has arrived.
        :raises ClientDisconnect: If its client disconnects.
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
                    others = self._held_by[caller] - size
                    if others and others + size + len(part) > CALLER_SHARE * self._max_bytes:
                        raise Overloaded("Your other requests fill your share of the memory; try again in a moment")
                    self.held_bytes += len(part)
                    self._held_by[caller] += len(part)
                    size += len(part)
                    window_bytes += len(part)
                    parts.append(part)
                    if window_bytes >= WINDOW_BYTES:
                        window_bytes = 0
                        limit.reschedule(loop.time() + WINDOW_S)
        except BaseException as error:
            self.release(caller, size)
            if isinstance(error, TimeoutError):
                raise (ServiceClosing() if self._closed else BodyTooSlow(MIN_BYTES_PER_S)) from None
            raise
        finally:
            self._arriving.discard(limit)
        return b"".join(parts)

    def release(self, caller: str, size: int) -> None:
        self.held_bytes -= size
        self._held_by[caller] -= size
        if not self._held_by[caller]:
            del self._held_by[caller]

    def close(self) -> None:
        """Refuse the bodies that are still arriving."""
        self._closed = True
        now = asyncio.get_running_loop().time()
        for limit in self._arriving:
            limit.reschedule(now)


_Task = tuple["asyncio.Future[Any]", Context, Callable[..., Any], tuple[Any, ...]]


class WorkerThreads:
    """The threads that the functions of routes run on: at most `limit`, started when they are first needed.

    Daemons, unlike those of `concurrent.futures`: a running request does not keep the process alive.
    Passing work to them and back takes a third of the CPU that it takes with anyio. `run` is for the event loop only.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._started = 0
        self._unfinished = 0

    def run(self, function: Callable[..., Any], *arguments: Any) -> asyncio.Future[Any]:
        """Run a function on a thread in the caller's context and return its future result. It cannot be cancelled."""
        if self._unfinished >= self._started < self._limit:
            self._started += 1
            Thread(target=self._work, name=f"souvenir-request-{self._started}", daemon=True).start()
        self._unfinished += 1
        result: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._tasks.put((result, copy_context(), function, arguments))
        return result

    def close(self) -> None:
        """Let the threads end when they are idle."""
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
            except RuntimeError:  # the event loop was closed: nothing waits for the result
                return
            # An idle thread keeps no reference to its last work.
            del result, context, function, arguments, done

    def _finish(self, result: asyncio.Future[Any], value: Any, error: BaseException | None) -> None:
        self._unfinished -= 1
        if result.cancelled():
            return
        if error is None:
            result.set_result(value)
        else:
            result.set_exception(error)
