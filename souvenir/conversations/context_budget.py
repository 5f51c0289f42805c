"""Choose the results of a context that fit its token budget. Pure functions.

Results are walked best first. The tokens of each line are counted once and added up; a result that does not fit is
skipped, and the next one tried. The question right before a chosen answer is added from a small share of the budget.
"""

from __future__ import annotations

from bisect import bisect, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache

from souvenir.conversations.agent_search import AnyHit
from souvenir.conversations.context_text import (
    CONVERSATIONS_HEADING,
    MEMORIES_HEADING,
    Layout,
    memory_line,
    turn_line,
)
from souvenir.conversations.message_search import MessageHit
from souvenir.core.types import Memory
from souvenir.store.messages.messages import Message

MIN_TOKENS_LEFT = 8
"""If fewer are left, no further result is tried; hardly a line is shorter."""

MAX_MISFITS = 30
"""Number of results that do not fit after which no further one is tried."""

QUESTIONS_SHARE = 0.1
"""Share of the budget for the questions before chosen answers (measured by benchmarks/context)."""


A_SESSION_HEADING = "### 2025-12-31"
"""Counted once instead of each one."""

MAX_LISTED = 50
"""Number of dropped results that are listed on request."""


class DropReason(StrEnum):
    """Why a result is not in the text: it does not fit the budget, or hardly matches the query."""

    BUDGET = "budget"
    RELEVANCE = "relevance"


@dataclass(frozen=True, slots=True)
class DroppedHit:
    """A result that is not in the text."""

    hit: AnyHit
    reason: DropReason


@dataclass(frozen=True, slots=True)
class Dropped:
    """The number of results that are not in the text because they do not fit the budget.

    :param listed: On request: these, and then results that hardly match the query, each best first.
    """

    messages: int
    memories: int
    listed: Sequence[DroppedHit] | None = None

    @classmethod
    def of(cls, found: Sequence[AnyHit], shown: Sequence[AnyHit]) -> Dropped:
        messages, messages_shown = (sum(isinstance(hit, MessageHit) for hit in hits) for hits in (found, shown))
        return cls(messages - messages_shown, len(found) - messages - (len(shown) - messages_shown))


def dropped_hits(
    found: Sequence[AnyHit], shown: Sequence[AnyHit], distant: Sequence[AnyHit], max_results: int | None
) -> list[DroppedHit]:
    """List what is not shown, at most `MAX_LISTED` and, with the shown ones, `max_results`.

    :param distant: Results that hardly match the query.
    """
    in_text = {id(hit) for hit in shown}
    listed = [DroppedHit(hit, DropReason.BUDGET) for hit in found if id(hit) not in in_text]
    listed += [DroppedHit(hit, DropReason.RELEVANCE) for hit in sorted(distant, key=lambda hit: -hit.score)]
    return listed[: MAX_LISTED if max_results is None else max(0, max_results - len(shown))]


@dataclass(frozen=True, slots=True)
class Choice:
    """A chosen result, and the question that is shown before it."""

    hit: AnyHit
    question: Message | None = None

    @property
    def turns(self) -> Iterator[Message]:
        """The turns that are shown, if it is a message."""
        if isinstance(self.hit, MessageHit):
            yield self.hit.message
        if self.question is not None:
            yield self.question


def chosen(
    found: Iterable[AnyHit],
    questions: Mapping[int, Message],
    layout: Layout,
    count: Callable[[str], int],
    *,
    max_tokens: int,
) -> list[Choice]:
    """Return the results whose lines and headings have at most `max_tokens` tokens in sum, best first.

    :param found: Best first. :param questions: The question before an answer, by the answer's id.
    :param count: Returns the number of tokens of a text.
    """
    page = _Page(layout, cache(count))
    left, left_for_questions = max_tokens, int(QUESTIONS_SHARE * max_tokens)
    choices: list[Choice] = []
    misfits = 0
    for hit in found:
        if left < MIN_TOKENS_LEFT or misfits == MAX_MISFITS:
            break
        record = hit.message if isinstance(hit, MessageHit) else hit.memory
        tokens = page.tokens_of(record, at_most=left)
        if tokens > left:
            misfits += 1
            continue
        page.add(record)
        left -= tokens
        question = questions.get(record.id) if isinstance(record, Message) else None
        if question is not None:
            most = min(left, left_for_questions)
            tokens = page.tokens_of(question, at_most=most)
            if tokens > most:
                question = None
            else:
                page.add(question)
                left, left_for_questions = left - tokens, left_for_questions - tokens
        choices.append(Choice(hit, question))
    return choices


@dataclass(slots=True)
class _Page:
    """The current choice: the positions of the turns, by session, and whether there are memories."""

    layout: Layout
    count: Callable[[str], int]
    positions: dict[int, list[int]] = field(default_factory=dict)
    has_memories: bool = False

    def tokens_of(self, one: Message | Memory, *, at_most: int) -> int:
        """Return the number of tokens that a turn or memory adds; 0 for a turn that was added before.

        :param at_most: A line that has more words than this is not counted exactly, which takes time.
        """
        if isinstance(one, Memory):
            heading = 0 if self.has_memories else self.count(MEMORIES_HEADING)
            return heading + self._of_line(memory_line(one, self.layout), at_most)
        positions = self.positions.get(one.session_row, [])
        if one.position in positions:
            return 0
        tokens = self._of_line(turn_line(one, self.layout), at_most)
        if not self.positions:
            tokens += self.count(CONVERSATIONS_HEADING)
        if not positions:
            return tokens + self.count(A_SESSION_HEADING)
        return tokens + self.count(self.layout.gap) * _more_gaps(positions, one.position)

    def _of_line(self, line: str, at_most: int) -> int:
        words = len(line.split())
        return words if words > at_most else self.count(line)

    def add(self, one: Message | Memory) -> None:
        if isinstance(one, Memory):
            self.has_memories = True
        else:
            insort(self.positions.setdefault(one.session_row, []), one.position)


def _more_gaps(positions: Sequence[int], added: int) -> int:
    """Return how many more gaps sorted positions have with another one among them."""
    at = bisect(positions, added)
    after_gap = at > 0 and positions[at - 1] + 1 < added
    before_gap = at < len(positions) and added + 1 < positions[at]
    was_gap = 0 < at < len(positions)
    return after_gap + before_gap - was_gap
