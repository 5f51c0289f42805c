"""Storing the messages of proxied calls, without delaying or failing the calls.

Messages are stored durably first, which takes milliseconds, and indexed afterwards. Everything runs in tasks of the
event loop, which outlive their requests and the admission of new ones. A write that fails because the store cannot take
it now is repeated with the same Idempotency-Key, so that nothing is stored twice, and those of one session wait for
each other. Closing waits for what is left; what is stored and not indexed by then is indexed at the next start.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any
from uuid import uuid4

import structlog

from souvenir.compat.proxy.places import Place
from souvenir.compat.proxy.wires import Turn
from souvenir.compat.proxy.wires.messages import message_of
from souvenir.conversations.continued import Continued
from souvenir.core.concurrency import deadline
from souvenir.core.errors import QuotaExceeded, SessionEnded, SouvenirError
from souvenir.core.types import MessageRole
from souvenir.server.service import Service
from souvenir.store.idempotency import Once
from souvenir.store.messages.messages import Message, MessageDraft

MAX_WAITING = 1_000
"""Maximum number of requests and answers that wait to be stored."""
MAX_AT_ONCE = 4
"""Maximum number of threads that store and index."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.1, 2.0
GIVE_UP_S = 120.0
CLOSE_S = 10.0
INDEX_DELAY_S = 0.2
"""Both sides of a call are usually stored by then, and embedded in one run of the model."""

ROUTE = "proxy"
"""Of the idempotency keys."""

log = structlog.get_logger(__name__)


class Course:
    """The state that the messages of a call continue: of the store at its begin, then with its stored question.

    :ivar searched: Set when its context was searched. Its messages are stored before, and indexed after that.
    """

    def __init__(self, begin: Continued) -> None:
        self.continued = begin
        self.searched = asyncio.Event()

    def stored(self, messages: Sequence[Message]) -> None:
        if messages:
            self.continued = Continued.by(messages[-1])


@dataclass(slots=True)
class Said:
    """What one side said.

    :param read: Returns its turns; called once, on a thread.
    :param caller: The caller to which storing is charged.
    """

    place: Place
    read: Callable[[], Sequence[Turn]]
    caller: str
    course: Course
    at: datetime
    _drafts: Sequence[MessageDraft] | None = None

    def drafts(self) -> Sequence[MessageDraft]:
        """The turns as messages of the session; those without content are left out."""
        if self._drafts is None:
            self._drafts = [draft for turn in self.read() if (draft := self._draft(turn)) is not None]
        return self._drafts

    def _draft(self, turn: Turn) -> MessageDraft | None:
        message = message_of(turn, self.at, self.place.user)
        if message is None:
            return None
        return MessageDraft(
            MessageRole(message["role"]),
            message["content"],
            message.get("metadata"),
            session_id=self.place.session_id,
            user=self.place.user,
            created_at=self.at,
        )


class Storing:
    """:param service: Its engine stores."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._threads = asyncio.Semaphore(MAX_AT_ONCE)
        self._stores: dict[Place, asyncio.Task[None]] = {}
        """The last task of each place; each waits for the one before."""
        self._waiting = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._indexing: dict[Place, bool] = {}
        """The places whose messages are being indexed, and whether there are more since."""

    @property
    def is_idle(self) -> bool:
        return not self._tasks

    def put(self, said: Said) -> asyncio.Task[None] | None:
        """Store in the background, after what was said before; return the task, or None if too many wait."""
        if self._waiting >= MAX_WAITING:
            _dropped(said, "too_many_waiting")
            return None
        self._waiting += 1
        task = self._start(self._store(said, self._stores.get(said.place)))
        self._stores[said.place] = task
        task.add_done_callback(partial(self._stored, said.place))
        return task

    async def close(self) -> None:
        """Wait for what is being stored, and say what is lost."""
        end = time.monotonic() + CLOSE_S
        while self._tasks and (left_s := end - time.monotonic()) > 0:
            await asyncio.wait(self._tasks, timeout=left_s)
        if self._waiting:
            log.warning("proxied_messages_lost", requests_and_answers=self._waiting)
        left = list(self._tasks)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _stored(self, place: Place, task: asyncio.Task[None]) -> None:
        self._waiting -= 1
        if self._stores.get(place) is task:
            del self._stores[place]

    async def _store(self, said: Said, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait((before,))
        try:
            await self._store_all(said)
            if said.drafts():
                self._start(self._index(said))
        except Exception as error:  # the boundary of a task: the call goes on, and the loss is reported
            log.error("proxied_message_not_stored", agent=said.place.scope.namespace, exc_info=error)

    async def _store_all(self, said: Said, chosen: Sequence[MessageDraft] | None = None) -> None:
        """:param chosen: A part of its messages; by default all, which the thread that stores them reads first."""
        conversations, scope, session_id = self._service.conversations, said.place.scope, said.place.session_id
        # The key is new, so there is nothing to compare its request with.
        once = Once.of(ROUTE, uuid4().hex, None)

        def append() -> None:
            drafts, continued = said.drafts() if chosen is None else chosen, said.course.continued
            if drafts:
                said.course.stored(conversations.append(scope, session_id, drafts, once=once, continued=continued))

        try:
            await self._repeated(said, append)
        except SessionEnded:
            # The agent's active session takes them, and indexes them at once.
            await said.course.searched.wait()
            moved = [replace(draft, session_id=None) for draft in chosen or said.drafts()]
            await self._repeated(said, partial(conversations.add, scope, moved, once=once))
        except SouvenirError as error:
            if error.status == 422 and chosen is None and len(said.drafts()) > 1:
                for draft in said.drafts():
                    await self._store_all(said, [draft])
                return
            _dropped(said, error.code)

    async def _index(self, said: Said) -> None:
        """Index the stored messages of a session, once for all that were stored meanwhile."""
        place = said.place
        if place in self._indexing:
            self._indexing[place] = True
            return
        index = partial(self._service.conversations.index_pending, place.scope, place.session_id)
        try:
            self._indexing[place] = True
            await said.course.searched.wait()
            while self._indexing[place]:
                await asyncio.sleep(INDEX_DELAY_S)
                self._indexing[place] = False
                await self._repeated(said, index)
        except Exception as error:  # the boundary of a task: they are stored, and indexed with the next ones
            log.error("proxied_message_not_indexed", agent=place.scope.namespace, exc_info=error)
        finally:
            del self._indexing[place]

    async def _repeated(self, said: Said, work: Callable[[], object]) -> None:
        """Do something on a thread until the store takes it.

        It takes no place of the admission, which closes before the last answers are stored.

        :raises SouvenirError: If it is refused, or the store fails for too long.
        """
        begin, pause_s = time.monotonic(), FIRST_PAUSE_S
        while True:
            try:
                with deadline(self._service.settings.request_timeout_s, caller=said.caller):
                    async with self._threads:
                        await self._service.threads.run(work)
            except SouvenirError as error:
                if not _may_pass(error) or time.monotonic() - begin > GIVE_UP_S:
                    raise
            else:
                return
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def _may_pass(error: SouvenirError) -> bool:
    """Whether the store may take it later."""
    return not isinstance(error, QuotaExceeded) and (error.status == 429 or error.status >= 500)


def _dropped(said: Said, reason: str) -> None:
    log.warning("proxied_message_dropped", agent=said.place.scope.namespace, reason=reason)
