"""The recognition of messages that were captured before, by digests of the conversation up to them.

Callers send the whole conversation with each call. The new part of a call is everything after its longest known prefix.
Digests cover the messages of users and tools by position, not those of assistants, because callers shorten and reformat
answers before they send them back.

Rules, for one conversation (`tests/client/test_prefixes.py` has them as a table):

- Of an unknown history, only the part from the user's last message on is new.
- The same applies to a truncated or edited history; but results of tools after a user's message do not make that
  message new again.
- An answer was captured when it arrived, so it is not new in the history that contains it.
- An identical request is a retry and adds nothing, unless it was answered: then the user repeated the last message.

Bounded: the least recently used digests are dropped, as if they had never been seen. Thread-safe.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2b
from threading import Lock

from souvenir_client.interception.wires.turns import Turn

DIGEST_BYTES = 16
MAX_KNOWN = 50_000
"""Maximum number of digests, of about 200 bytes each."""


class RequestState(IntEnum):
    """The state of a request."""

    ASKED = 0
    ANSWERING = 1
    """An answer began; it may have broken off."""
    ANSWERED = 2


Find = Callable[[], RequestState]


@dataclass(slots=True)
class Mark:
    """The state of the request that ended with a known digest, and callbacks that update it when needed."""

    progress: RequestState = RequestState.ASKED
    unread: tuple[Find, ...] = ()

    def now(self) -> RequestState:
        unread, self.unread = self.unread, ()
        self.progress = max((self.progress, *(find() for find in unread)))
        return self.progress


@dataclass(frozen=True, slots=True)
class News:
    """The new part of a request.

    :param turns: In order.
    :param conversation: Digest that identifies the conversation.
    :param marks: Of the whole request.
    :param question: Digest of the user's last message in its conversation, the same throughout a tool loop; None if the
        request has no message of a user.
    :param in_loop: Whether tools answered since that message.
    """

    turns: tuple[Turn, ...]
    conversation: bytes
    marks: tuple[Mark, ...]
    question: bytes | None
    in_loop: bool

    def note(self, progress: RequestState) -> None:
        """Record the progress of the request, or of one of its answers."""
        for mark in self.marks:
            mark.progress = max(mark.progress, progress)

    def note_unread(self, find: Find) -> None:
        """Note an answer that is not parsed yet. Takes no lock, so a finaliser may call it."""
        for mark in self.marks:
            mark.unread = (*mark.unread, find)

    def note_read(self) -> None:
        """Record the answers that were not parsed before, and release them."""
        for mark in self.marks:
            mark.now()


@dataclass(frozen=True, slots=True)
class _Step:
    """A turn that is part of the digests, with its index in the request."""

    index: int
    digest: bytes


class KnownPrefixes:
    def __init__(self, max_known: int = MAX_KNOWN) -> None:
        self._known: OrderedDict[bytes, Mark] = OrderedDict()
        self._max_known = max_known
        self._lock = Lock()

    def take(self, conversation: Sequence[str], turns: Sequence[Turn]) -> News:
        """Return the new part of a request and mark it as known: of concurrent requests, one gets each message.

        :param conversation: Identifies it, for example by agent and session.
        """
        last_user = next((index for index in reversed(range(len(turns))) if turns[index].role == "user"), None)
        begin = last_user or 0
        seed = _digest(b"", *conversation)
        whole = list(_steps(_digest(seed, "whole"), turns, 0))
        tail = list(_steps(_digest(seed, "tail"), turns, begin))
        with self._lock:
            start = self._start(turns, whole, tail, begin)
            for step in (*(step for step in whole if step.index >= start), *whole[-1:], *tail):
                said_now = start == len(turns) - 1 == step.index
                self._keep(step.digest, Mark() if said_now else self._known.get(step.digest, Mark()))
            marks = tuple(self._known[steps[-1].digest] for steps in (whole, tail) if steps)
            while len(self._known) > self._max_known:
                self._known.popitem(last=False)
        return News(
            turns=tuple(turns[start : _end(turns)]),
            conversation=seed,
            marks=marks,
            question=None if last_user is None else tail[0].digest,
            in_loop=last_user is not None and len(tail) > 1,
        )

    def _start(self, turns: Sequence[Turn], whole: Sequence[_Step], tail: Sequence[_Step], begin: int) -> int:
        """Index of the first turn that is new."""
        known = self._last_known(whole)
        if known is None:
            loop = self._last_known(tail) if len(tail) > 1 else None
            return begin if loop is None else self._after(loop, turns)
        said_again = (
            known.index == len(turns) - 1
            and turns[known.index].role == "user"
            and self._known[known.digest].now() is RequestState.ANSWERED
        )
        return known.index if said_again else self._after(known, turns)

    def _last_known(self, steps: Sequence[_Step]) -> _Step | None:
        return next((step for step in reversed(steps) if step.digest in self._known), None)

    def _after(self, known: _Step, turns: Sequence[Turn]) -> int:
        """The start of the part after a known message; its answer is not new if one was captured."""
        start = known.index + 1
        if self._known[known.digest].now() is not RequestState.ASKED:
            while start < len(turns) and turns[start].role == "assistant":
                start += 1
        return start

    def _keep(self, digest: bytes, mark: Mark) -> None:
        self._known[digest] = mark
        self._known.move_to_end(digest)


def _end(turns: Sequence[Turn]) -> int:
    """Return the end without an assistant prefill, which is no separate turn."""
    end = len(turns)
    while end and turns[end - 1].role == "assistant":
        end -= 1
    return end


def _steps(seed: bytes, turns: Sequence[Turn], begin: int) -> Iterator[_Step]:
    digest = seed
    for index in range(begin, len(turns)):
        turn = turns[index]
        if turn.role == "assistant":
            continue
        # Not the tool's name, which is unknown unless the history contains the call.
        call = turn.metadata.get("tool_result", {}).get("tool_call_id", "")
        digest = _digest(digest, turn.role, turn.content, call, json.dumps(turn.metadata.get("attachments")))
        yield _Step(index, digest)


def _digest(before: bytes, *texts: str) -> bytes:
    """Digests of texts after a prefix; they include the length of each text, so different sequences differ."""
    found = blake2b(before, digest_size=DIGEST_BYTES)
    for text in texts:
        content = text.encode("utf-8", "surrogatepass")
        found.update(len(content).to_bytes(8, "big"))
        found.update(content)
    return found.digest()
