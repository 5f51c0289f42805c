"""What is learned without a model: sentences that state something durable, as they were said.

Known by their words, so much is missed, and what is found is not put in other words. Deterministic: equal transcripts
give equal facts. What hygiene took out, code, and the turns of tools and systems are not looked at. Pure functions,
linear in the transcript.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from souvenir.decisions import Category, Fact, Span
from souvenir.extraction.code_blocks import code_blocks
from souvenir.extraction.sentences import sentences
from souvenir.extraction.turns import Piece, Transcript, Turn, TurnRole

MIN_CHARS, MAX_CHARS = 24, 280
MIN_WORDS = 4

_TURN_ORDER = {TurnRole.USER: 0, TurnRole.UNKNOWN: 1, TurnRole.ASSISTANT: 2}
"""Whose sentences come first where not all may be taken; other roles have none."""


class _Pattern(NamedTuple):
    """`strength` says what goes first within a role: 0 what is meant to be kept, 2 what may be small talk."""

    category: Category
    strength: int
    words: re.Pattern[str]


def _pattern(category: Category, strength: int, *words: str) -> _Pattern:
    return _Pattern(category, strength, re.compile(rf"\b(?:{'|'.join(words)})", re.IGNORECASE))


_PEOPLE = (
    "wife|husband|partner|girlfriend|boyfriend|spouse|fianc[eé]e?|mother|father|mom|mum|dad|sister|brother|son|daughter"
    "|kids?|children|dog|cat|pet|boss|manager|team|company|birthday|email|phone|address|job|hometown|nickname"
)
_PATTERNS = (
    _pattern(Category.DETAIL, 0, r"remember (?:that|to|this|my|our|i|we|the)\b", r"(?:please|always) remember\b"),
    _pattern(
        Category.DECISION,
        0,
        r"decid(?:e|ed|es|ing)\b",
        r"decisions?\b",
        r"agreed (?:to|on|that)\b",
        r"(?:going|went|go) with\b",
        r"settled on\b",
        r"polic(?:y|ies)\b",
        r"standard(?:s|ise|ize|ised|ized)?\b",
        r"(?:commit(?:ted|ting)? to|promised)\b",
    ),
    _pattern(
        Category.DETAIL,
        0,
        r"(?:strongly )?prefer(?:s|red|ence|ences)?\b",
        r"(?:i|we|he|she|they)(?:'d|’d| would) rather\b",
    ),
    _pattern(
        Category.DETAIL,
        1,
        r"my name is\b",
        r"(?:please )?call me\b",
        r"(?:i|we) (?:live|lived|work|worked|study|studied|own|grew up|moved|was born|were born|speak)\b",
        r"(?:i['’]m|i am) (?:allergic|vegan|vegetarian|married|divorced|single|called|from|based|living|working|an? )"
        r"(?! ?bit| ?little| ?lot)",
        r"(?:i|we) have (?:an?|one|two|three|four|five|\d+) ",
        rf"(?:my|our) (?:[a-z]+ )?(?:{_PEOPLE})(?:'s|’s)?\b",
        r"(?:my|our) favou?rite\b",
        r"(?:i|we) (?:always|never|usually|only)\b",
    ),
    _pattern(
        Category.LEARNING,
        1,
        r"(?:turns|turned) out\b",
        r"(?:i|we|they)(?:'ve|’ve| have)? (?:learned|learnt|found out|realised|realized|discovered)\b",
        r"confirmed\b",
        r"root cause\b",
        r"the (?:fix|reason|cause|problem) (?:is|was)\b",
    ),
    _pattern(
        Category.DECISION,
        2,
        r"(?:we|i) (?:should|will|must)\b",
        r"(?:we|i)(?:'ll|’ll)\b",
        r"let(?:'s|’s| us) (?!see\b|say\b|talk\b|hope\b|know\b|start\b|look\b|check\b)",
        r"(?:switch(?:ing|ed)?|mov(?:ing|ed)|adopt(?:ing|ed)?|updat(?:ing|ed)|re-?run(?:ning)?) "
        r"(?:\S+ ){0,4}?(?:to|from|the|all)\b",
        r"(?:always|never|please|only|not|we|they|to) use[sd]?\b",
    ),
    _Pattern(Category.DECISION, 2, re.compile(r"\s*use\s+\S", re.IGNORECASE)),
    _pattern(
        Category.DETAIL,
        2,
        r"(?:i|we) (?:really )?(?:love|like|enjoy|hate|dislike|can't stand|can’t stand|need|want)\b",
        r"(?:deadline|due)\b",
    ),
)
_QUESTION = re.compile(
    r"(?:who|what|when|where|why|which|how|whose|do|does|did|is|are|was|were|can|could|should|would|will|have|has)"
    r"(?:n't|n’t)? (?:i|you|we|they|he|she|it|the|this|that|your|my|there)\b",
    re.IGNORECASE,
)
_OPEN = re.compile(
    r"\b(?:if i|if we|if you|what if|suppose|imagine|hypothetically|for example|maybe|might|perhaps)\b", re.IGNORECASE
)
"""A sentence that leaves open whether it is so."""
_LEAD = re.compile(r"\s*(?:(?:[-*•>]|[0-9]{1,3}[.)]|#{1,6}|\[[ xX]?\])\s+)*")


def durable_facts(transcript: Transcript, *, max_facts: int) -> list[Fact]:
    """The sentences that state something durable, at most so many, in the order of the transcript.

    Where there are more, those of users go first, then those of nobody in particular, then an assistant's; of one role
    those with the plainest words.
    """
    found: list[tuple[int, int, int, Fact]] = []
    told: set[str] = set()
    for turn in transcript.turns:
        if turn.role not in _TURN_ORDER:
            continue
        for strength, fact in _facts(turn):
            key = " ".join(fact.text.casefold().split())
            if key not in told:
                told.add(key)
                found.append((_TURN_ORDER[turn.role], strength, len(found), fact))
    taken = sorted(found, key=lambda one: one[:3])[:max_facts]
    return [fact for *_, fact in sorted(taken, key=lambda one: one[2])]


def _facts(turn: Turn) -> Iterator[tuple[int, Fact]]:
    for piece in turn.pieces:
        for start, end in _sentences(piece):
            said = piece.text[start:end]
            if pattern := _durable(said):
                span = Span(piece.offset(start), piece.offset(end))
                yield pattern.strength, Fact(said, pattern.category, turn.origin, span, turn.speaker, turn.at)


def _sentences(piece: Piece) -> Iterator[tuple[int, int]]:
    """Spans of sentences outside of code, without what makes them an entry of a list."""
    blocks = code_blocks(piece.text)
    at = 0
    for start, end in sentences(piece.text):
        while at < len(blocks) and blocks[at][1] <= start:
            at += 1
        if at < len(blocks) and blocks[at][0] < end:
            continue
        lead = _LEAD.match(piece.text, start, end)
        start = lead.end() if lead else start
        yield start, start + len(piece.text[start:end].rstrip())


def _durable(said: str) -> _Pattern | None:
    if not MIN_CHARS <= len(said) <= MAX_CHARS or len(said.split()) < MIN_WORDS:
        return None
    if said.endswith(("?", "？", ":")) or _QUESTION.match(said) or _OPEN.search(said):
        return None
    return next((pattern for pattern in _PATTERNS if pattern.words.search(said)), None)
