"""Streams of events to any number of readers, as server-sent events.

Readers begin with what the table holds after the last event that they know, and then get new events from one thread,
which reads the table once for all of them after a commit. A reader's queue is short: one that falls behind continues
from the table, so a slow reader takes no memory and delays nobody. Between its events a stream holds no thread and no
place of the service. Everything here runs on the event loop, unless it says otherwise.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from threading import Event as ThreadEvent
from threading import Thread
from typing import TypeVar

import structlog
from anyio import CapacityLimiter, to_thread

from souvenir.core.errors import Overloaded, ServiceClosing, TooManyStreams
from souvenir.core.types import JsonObject
from souvenir.events.feed import EventFeed
from souvenir.store.admin.events import Event, EventFilter, EventPage

T = TypeVar("T")

HEARTBEAT_S = 15.0
"""A comment is sent after so long without an event, and the reader's key and access levels are checked again."""

RETRY_MS = 5_000
"""Readers connect again so long after their stream ended."""

MAX_WAITING = 256
"""Maximum number of events in the queue of a reader."""

READ_AT_ONCE = 500

PAUSE_S = 0.02
"""Pause between two reads, in which commits gather."""

RETRY_PAUSE_S = 1.0

CALLER_SHARE = 4
"""One caller may have one in so many of the streams."""

LOST = "events.lost"
"""The type of the event that tells a reader to load everything again, since events after its last one are not kept."""

_LOST_DATA = {"message": "Events after the last one that you know are not kept; load what you show again"}

log = structlog.get_logger(__name__)


def _message(event_id: int, event_type: str, data: JsonObject) -> bytes:
    return f"id: {event_id}\nevent: {event_type}\ndata: {json.dumps(data, ensure_ascii=False)}\n\n".encode()


def _encoded(event: Event) -> bytes:
    return _message(event.id, event.type, {**event.data, "timestamp": event.at.isoformat(timespec="microseconds")})


class Reader:
    """One stream.

    :param chosen: What it may see now.
    """

    def __init__(self, namespace: str, chosen: EventFilter, keys_revision: int, restores: int) -> None:
        self.namespace = namespace
        self.restores = restores
        """The number of restores before the reader began to read, or that it was informed of."""
        self.chosen = chosen
        self.keys_revision = keys_revision
        """That of the keys by which `chosen` was found."""
        self.position = 0
        """The last event that was sent, or known to be of no interest."""
        self.is_live = False
        self.is_lost = False
        self.waiting: deque[tuple[int, bytes]] = deque()
        self.woken = asyncio.Event()

    def offer(self, event: Event, encode: Callable[[], bytes]) -> None:
        """Queue a new event; a reader whose queue is full goes on from the table."""
        if not self.is_live or event.id <= self.position:
            return
        shown = self.chosen.shown(event)
        if shown is None:
            return
        if len(self.waiting) >= MAX_WAITING:
            self.waiting.clear()
            self.is_live = False
        else:
            self.waiting.append((event.id, encode() if shown is event else _encoded(shown)))
        self.woken.set()

    def begin_again(self, restores: int) -> None:
        """Continue from the table after a restore; a reader that began before it has lost events."""
        self.is_lost = self.is_lost or self.restores < restores
        self.restores = restores
        self.is_live = False
        self.waiting.clear()
        self.woken.set()


class EventStreams:
    """The readers of one service, and the thread that reads for them.

    :param most: Maximum number of streams. :param max_s: A stream ends after this time.
    """

    def __init__(self, feed: EventFeed, *, most: int, max_s: float, keys_revision: Callable[[], int]) -> None:
        """:param keys_revision: Returns a number that changes with the keys, which readers are checked against then."""
        self._feed = feed
        self._keys_revision = keys_revision
        self._most = most
        self._max_s = max_s
        self._readers: dict[str, set[Reader]] = {}
        self._callers: Counter[str] = Counter()
        self._threads = CapacityLimiter(2)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None
        self._dispatched: dict[str, int] = {}
        """The last event that was dispatched, of each namespace with readers whose new events are dispatched."""
        self._joined = asyncio.Event()
        """Set, and replaced, when the new events of further namespaces are dispatched."""
        self.closing = asyncio.Event()
        self._stopping = ThreadEvent()
        self._committed = ThreadEvent()
        self._restores = 0
        self._restarted = 0
        """The number of restores that the readers were informed of."""
        self._unsubscribe: Callable[[], None] | None = None
        feed.when_restored(self._note_restore)

    @property
    def count(self) -> int:
        return self._callers.total()

    def end_all(self) -> None:
        """End all streams and refuse new ones."""
        self.closing.set()
        self._joined.set()
        for reader in self._all():
            reader.woken.set()

    def close(self) -> None:
        """End the thread; called from another one, when no request runs any more."""
        self._stopping.set()
        self._committed.set()
        if self._thread is not None:
            self._thread.join()

    async def messages(
        self, caller: str, namespace: str, check: Callable[[], EventFilter], last_event_id: int | None
    ) -> AsyncGenerator[bytes]:
        """Yield the messages of a new stream until it ends.

        :param check: Returns what the caller may see, or raises if it may not any more; runs on a thread.
        :param last_event_id: The last event that the reader knows; None begins with the next one, 0 with the first.
        :raises TooManyStreams: If there are too many. :raises ServiceClosing: If the service stops.
        """
        revision = self._keys_revision()
        reader = Reader(namespace, await self._on_thread(check), revision, self._restores)
        with self._opened(caller, reader):
            reader.position, lost = await self._on_thread(lambda: self._begin(namespace, last_event_id))
            yield f"retry: {RETRY_MS}\nid: {reader.position}\n\n".encode()
            if lost:
                yield _message(reader.position, LOST, _LOST_DATA)
            async for message in self._follow(reader, check):
                yield message

    def _begin(self, namespace: str, last_event_id: int | None) -> tuple[int, bool]:
        """Return the event to go on from, and whether earlier ones are lost to the reader; on a thread."""
        if last_event_id == 0 or (last_event_id and self._feed.is_complete(namespace, last_event_id)):
            return last_event_id, False
        return self._feed.last_of(namespace), last_event_id is not None

    async def _follow(self, reader: Reader, check: Callable[[], EventFilter]) -> AsyncGenerator[bytes]:
        loop = asyncio.get_running_loop()
        ends_at, checked_at = loop.time() + self._max_s, loop.time()
        while not self.closing.is_set() and (now := loop.time()) < ends_at:
            is_late, revision = now - checked_at >= HEARTBEAT_S, self._keys_revision()
            if is_late or revision != reader.keys_revision:
                reader.chosen, reader.keys_revision = await self._on_thread(check), revision
            if is_late:
                checked_at = now
                yield b": keepalive\n\n"
            if reader.is_lost:
                position = await self._on_thread(lambda: self._feed.last_of(reader.namespace))
                reader.position, reader.is_lost = position, False
                yield _message(reader.position, LOST, _LOST_DATA)
            if not reader.is_live:
                page = await self._on_thread(lambda: self._page(reader))
                for event in page.events:
                    yield _encoded(event)
                    reader.position = event.id
                reader.position = max(reader.position, page.read_to)
                if page.is_last:
                    while reader.namespace not in self._dispatched and not self.closing.is_set():
                        await self._joined.wait()
                    dispatched = self._dispatched.get(reader.namespace, 0)
                    reader.is_live = dispatched <= reader.position and not reader.is_lost
                continue
            while reader.waiting:
                event_id, message = reader.waiting.popleft()
                yield message
                reader.position = event_id
            if reader.is_live:
                await _wait(reader.woken, min(ends_at, checked_at + HEARTBEAT_S) - loop.time())

    def _page(self, reader: Reader) -> EventPage:
        return self._feed.after(reader.namespace, reader.position, limit=READ_AT_ONCE, chosen=reader.chosen)

    async def _on_thread(self, work: Callable[[], T]) -> T:
        return await to_thread.run_sync(work, limiter=self._threads)

    @contextmanager
    def _opened(self, caller: str, reader: Reader) -> Iterator[None]:
        if self.closing.is_set():
            raise ServiceClosing
        if self.count >= self._most:
            raise TooManyStreams(self._most)
        if self._callers[caller] >= max(1, self._most // CALLER_SHARE):
            raise Overloaded("This key has too many event streams; close some of them, and connect again")
        self._callers[caller] += 1
        self._readers.setdefault(reader.namespace, set()).add(reader)
        if self._thread is None:
            self._loop = asyncio.get_running_loop()
            self._thread = Thread(target=self._run, name="souvenir-events", daemon=True)
            self._thread.start()
        if self._unsubscribe is None:
            self._unsubscribe = self._feed.when_committed(self._committed.set)
        self._committed.set()
        try:
            yield
        finally:
            self._callers[caller] -= 1
            self._callers += Counter()
            of_namespace = self._readers[reader.namespace]
            of_namespace.discard(reader)
            if not of_namespace:
                # Nobody reads on, so the next reader joins at the end of the feed.
                del self._readers[reader.namespace]
                self._dispatched.pop(reader.namespace, None)
            if not self._readers and self._unsubscribe is not None:
                self._unsubscribe()
                self._unsubscribe = None

    def _all(self) -> list[Reader]:
        return [reader for readers in self._readers.values() for reader in readers]

    # --- the thread that reads for all -------------------------------------------------------------------------------

    def _note_restore(self) -> None:
        self._restores += 1
        self._committed.set()

    def _run(self) -> None:
        while self._committed.wait():
            self._committed.clear()
            # Read after the clearing: `close` sets it first, so that it is seen here or wakes the next round.
            if self._stopping.is_set():
                return
            try:
                self._dispatch()
            except Exception:  # the boundary of a thread, which is needed as long as the service runs
                log.exception("events_not_dispatched", action=f"tried again in {RETRY_PAUSE_S:g} s")
                self._committed.set()
                self._stopping.wait(RETRY_PAUSE_S)
            self._stopping.wait(PAUSE_S)

    def _dispatch(self) -> None:
        """Hand what was committed since the last call to the readers."""
        if self._restarted != (restores := self._restores):
            self._restarted = restores
            self._on_loop(partial(self._restart, restores))
        if new := [namespace for namespace in list(self._readers) if namespace not in self._dispatched]:
            self._on_loop(partial(self._join, {namespace: self._feed.last_of(namespace) for namespace in new}))
        is_last = False
        while self._dispatched and not is_last and not self._stopping.is_set():
            events = self._feed.after_each(dict(self._dispatched), limit=READ_AT_ONCE)
            self._on_loop(partial(self._hand_out, events))
            is_last = len(events) < READ_AT_ONCE

    def _on_loop(self, work: Callable[[], None]) -> None:
        """Run `work` on the event loop, and wait until it is done, so that nothing piles up there."""
        done = ThreadEvent()

        def run() -> None:
            try:
                work()
            finally:
                done.set()

        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(run)
            while not done.wait(RETRY_PAUSE_S) and not self._stopping.is_set():
                pass

    def _join(self, last: Mapping[str, int]) -> None:
        """Begin to dispatch events of namespaces after these ones, if they still have readers."""
        self._dispatched.update((namespace, one) for namespace, one in last.items() if namespace in self._readers)
        joined, self._joined = self._joined, asyncio.Event()
        joined.set()

    def _restart(self, restores: int) -> None:
        self._dispatched.clear()
        for reader in self._all():
            reader.begin_again(restores)

    def _hand_out(self, events: Sequence[Event]) -> None:
        for event in events:
            message: list[bytes] = []

            def encode(event: Event = event, message: list[bytes] = message) -> bytes:
                if not message:
                    message.append(_encoded(event))
                return message[0]

            for reader in self._readers.get(event.namespace, ()):
                reader.offer(event, encode)
            if event.namespace in self._dispatched:
                self._dispatched[event.namespace] = event.id
        revision = self._keys_revision()
        for reader in self._all():
            if reader.keys_revision != revision:
                reader.woken.set()


async def _wait(woken: asyncio.Event, timeout_s: float) -> None:
    try:
        await asyncio.wait_for(woken.wait(), max(0.0, timeout_s))
    except TimeoutError:
        return
    finally:
        woken.clear()
