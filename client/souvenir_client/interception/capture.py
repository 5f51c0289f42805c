"""The capture of messages: one bounded queue and one thread for each connection.

Messages of one place (agent, session, user) are stored in order, several in a request. Messages that the service
refuses, and messages that find the queue full, are dropped and counted. The thread starts with the first message and
ends when it has been idle for a while. It also parses streamed answers, so that model calls do not wait for it.

Nothing here raises into the caller's code. Thread-safe.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from queue import Empty, SimpleQueue
from threading import Condition, Thread
from weakref import WeakKeyDictionary

from souvenir_client.interception.messages import message_of
from souvenir_client.interception.outages import Outage
from souvenir_client.interception.storage import MAX_BATCH_TURNS, Place, Send, Storage
from souvenir_client.interception.transcripts import Transcripts
from souvenir_client.interception.wires.turns import Turn

MAX_WAITING_TURNS = 1_000
IDLE_S = 5.0
LINGER_S = 0.1
"""Delay to batch messages, unless a caller waits: question and answer are one request, and storing the question does
not delay the search for its context.
"""

_log = logging.getLogger("souvenir_client")


@dataclass(frozen=True, slots=True, eq=False)
class Said:
    """Turns of one request or answer.

    :param read: Returns the turns, the same on each call; called in the queue's thread.
    :param turns: Their number, as far as it is known in advance.
    :param owner: The owner whose flush waits for them.
    :param let_go: Called if they are dropped unread.
    """

    place: Place
    read: Callable[[], Sequence[Turn]]
    turns: int
    owner: object
    transcripts: Transcripts | None
    let_go: Callable[[], None]
    at: datetime = field(default_factory=lambda: datetime.now(UTC))


@dataclass(slots=True)
class _Account:
    waiting: int = 0
    dropped: int = 0
    settled: Future[None] | None = None


class Capture:
    def __init__(self, send: Send, outage: Outage) -> None:
        self._storage = Storage(send, outage, self._pause)
        self._changed = Condition()
        # Items from finalisers, and None to wake the thread.
        self._arrived: SimpleQueue[Said | None] = SimpleQueue()
        self._expected = 0
        self._queue: deque[Said] = deque()
        self._sending: list[Said] = []
        self._waiting = 0
        self._thread: Thread | None = None
        self._closed = False
        self._hurries = 0
        self._accounts: WeakKeyDictionary[object, _Account] = WeakKeyDictionary()

    def put(self, said: Said) -> None:
        """Queue the turns without blocking."""
        with self._changed:
            # Which was said before.
            self._take_all()
            self._take(said)
        self._arrived.put(None)

    def expect(self, answers: int) -> None:
        """Announce expected answers, or withdraw them (below 0): the thread runs while some are expected."""
        with self._changed:
            self._expected += answers
            self._begin()

    def pass_on(self, said: Said) -> None:
        """Queue an answer that was expected. Takes no lock, so that a finaliser may call it."""
        self._arrived.put(said)

    def settled(self, owner: object) -> Future[None]:
        """Return a future that completes when no messages of the owner wait."""
        with self._changed:
            self._take_all()
            account = self._account(owner)
            if account.settled is None:
                account.settled = Future()
                # So that a caller that stops waiting does not cancel it for others.
                account.settled.set_running_or_notify_cancel()
                self._hurries += 1
            settled = account.settled
            self._settle(account)
            self._changed.notify_all()
        # What was taken here needs no other word.
        self._arrived.put(None)
        return settled

    def outcome(self, owner: object) -> tuple[int, int]:
        """The number of waiting messages of the owner, and of those dropped since the last call."""
        with self._changed:
            self._take_all()
            account = self._account(owner)
            dropped, account.dropped = account.dropped, 0
            return account.waiting, dropped

    def close(self, timeout_s: float) -> Mapping[str, int]:
        """Wait up to that time for unsent messages, then stop.

        :returns: The number of messages that were not stored, by agent.
        """
        with self._changed:
            self._take_all()
            self._hurries += 1
            self._changed.notify_all()
            self._arrived.put(None)
            self._changed.wait_for(lambda: not self._waiting, timeout_s)
            self._closed = True
            self._changed.notify_all()
            left: Counter[str] = Counter()
            for said in (*self._sending, *self._queue):
                left[said.place.agent] += said.turns
            return left

    def _account(self, owner: object) -> _Account:
        return self._accounts.setdefault(owner, _Account())

    def _settle(self, account: _Account) -> None:
        if not account.waiting and account.settled is not None:
            self._hurries -= 1
            account.settled.set_result(None)
            account.settled = None

    def _take(self, said: Said) -> None:
        account = self._account(said.owner)
        if self._closed or self._waiting + said.turns > MAX_WAITING_TURNS:
            account.dropped += said.turns
            said.let_go()
            return
        self._queue.append(said)
        self._waiting += said.turns
        account.waiting += said.turns
        self._begin()

    def _take_all(self) -> None:
        """Take the message of the queue."""
        with suppress(Empty):
            while True:
                said = self._arrived.get_nowait()
                if said is not None:
                    self._expected -= 1
                    self._take(said)

    def _begin(self) -> None:
        if self._thread is None and not self._closed:
            thread = Thread(target=self._run, name="souvenir capture", daemon=True)
            thread.start()
            self._thread = thread

    def _run(self) -> None:
        while self._wait():
            while batch := self._next():
                dropped = sum(said.turns for said in batch)
                try:
                    dropped = self._send(batch[0].place, batch)
                except Exception:  # noqa: BLE001 - the thread's boundary: what comes after this is still stored
                    _log.warning("Turns of agent %s could not be captured", batch[0].place.agent, exc_info=True)
                self._end(batch, dropped)

    def _wait(self) -> bool:
        """Wait for something to do; False when the thread has to end."""
        with suppress(Empty):
            said = self._arrived.get(timeout=IDLE_S)
            with self._changed:
                if said is not None:
                    self._expected -= 1
                    self._take(said)
                self._take_all()
                self._changed.wait_for(self._is_urgent, LINGER_S)
                return not self._closed
        with self._changed:
            self._take_all()
            goes_on = bool(self._queue or self._expected) and not self._closed
            if not goes_on:
                self._thread = None
            return goes_on

    def _is_urgent(self) -> bool:
        return self._hurries > 0 or self._waiting >= MAX_BATCH_TURNS

    def _next(self) -> list[Said]:
        """Return the next turns of one place."""
        with self._changed:
            self._take_all()
            if not self._queue or self._closed:
                return []
            place, turns = self._queue[0].place, 0
            rest: deque[Said] = deque()
            for said in self._queue:
                if said.place == place and (not turns or turns + said.turns <= MAX_BATCH_TURNS):
                    self._sending.append(said)
                    turns += said.turns
                else:
                    # Later turns of the same place must not overtake these.
                    turns = MAX_BATCH_TURNS if said.place == place else turns
                    rest.append(said)
            self._queue = rest
            return list(self._sending)

    def _end(self, batch: Sequence[Said], dropped: int) -> None:
        with self._changed:
            if self._closed:
                return
            self._sending.clear()
            for said in batch:
                account = self._account(said.owner)
                account.waiting -= said.turns
                account.dropped += min(dropped, said.turns)
                dropped -= min(dropped, said.turns)
                self._waiting -= said.turns
                self._settle(account)
            self._changed.notify_all()

    def _pause(self, seconds: float) -> bool:
        """Wait before a retry; True if there is none. Parses captured answers, to save memory."""
        with self._changed:
            self._take_all()
            waiting = list(self._queue)
        for said in waiting:
            _read(said)
        with self._changed:
            return self._changed.wait_for(lambda: self._closed, seconds)

    def _send(self, place: Place, batch: Iterable[Said]) -> int:
        """:returns: How many turns were dropped."""
        messages = []
        for said in batch:
            for turn in _read(said):
                if said.transcripts is not None:
                    said.transcripts.add(place.session_id, place.user, turn)
                if (message := message_of(turn, said.at, place.user)) is not None:
                    messages.append(message)
        return self._storage.store(place, messages)


def _read(said: Said) -> Sequence[Turn]:
    try:
        return said.read()
    except Exception:  # noqa: BLE001 - the thread's boundary: what else was said is still stored
        _log.warning("An answer to agent %s could not be captured", said.place.agent, exc_info=True)
        return ()
