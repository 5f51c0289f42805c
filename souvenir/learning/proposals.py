"""The first stage of an extraction: from one window of a transcript to rows of the ledger, with quote and speaker.

The model proposes facts and quotes them; this stage locates the quote, the speaker and recalled text. Invariant: each
item of an answer is one row, including rejected ones.

Without a model, sentences that state something durable are taken verbatim, recognised by their words, so recall is low.
Deterministic: equal transcripts give equal facts. Code, text removed by hygiene, and turns of tools and systems are
skipped. Linear in the transcript.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import NamedTuple

from souvenir.core.errors import PersonalDataRejected
from souvenir.core.ledger import Category, FactRow, FactStage, LedgerFact, TextSpan
from souvenir.core.text import sentences
from souvenir.core.types import JsonObject, OriginClass, Scope
from souvenir.learning.guards import Guidance, error, skipped
from souvenir.learning.novelty import prepared
from souvenir.learning.questions import (
    EXTRACT,
    PROPOSE,
    PROPOSE_ALL,
    Proposals,
    ProposedFact,
    ask,
    prompt,
    text_in,
)
from souvenir.learning.quotes import find_quote, in_removed
from souvenir.learning.transcripts.hygiene import code_blocks
from souvenir.learning.transcripts.turns import Piece, Transcript, TranscriptTurn, TurnRole
from souvenir.learning.transcripts.windows import Window
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.similarity import cosine, figures, unit_vectors, words_key
from souvenir.models.llm.provider import LLMProvider
from souvenir.models.llm.salvage import Broken
from souvenir.privacy.screening import AppliedPolicy

MIN_CHARS, MAX_CHARS = 24, 280
MIN_WORDS = 4

_TURN_ORDER = {TurnRole.USER: 0, TurnRole.UNKNOWN: 1, TurnRole.ASSISTANT: 2}
"""Priority of roles if not all sentences may be taken; other roles have none."""


class _Pattern(NamedTuple):
    """`strength` orders sentences within a role: 0 is explicitly durable, 2 may be small talk."""

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
"""Matches sentences that leave open whether something is true."""
_LEAD = re.compile(r"\s*(?:(?:[-*•>]|[0-9]{1,3}[.)]|#{1,6}|\[[ xX]?\])\s+)*")


def durable_facts(transcript: Transcript, *, max_facts: int) -> list[LedgerFact]:
    """Return at most `max_facts` sentences that state something durable, in the order of the transcript.

    Priority: users, then unknown speakers, then assistants; within a role, the most explicit wording first.
    """
    found: list[tuple[int, int, int, LedgerFact]] = []
    texts: set[str] = set()
    for turn in transcript.turns:
        if turn.role not in _TURN_ORDER:
            continue
        for strength, fact in _facts(turn):
            key = " ".join(fact.text.casefold().split())
            if key not in texts:
                texts.add(key)
                found.append((_TURN_ORDER[turn.role], strength, len(found), fact))
    taken = sorted(found, key=lambda one: one[:3])[:max_facts]
    return [fact for *_, fact in sorted(taken, key=lambda one: one[2])]


def _facts(turn: TranscriptTurn) -> Iterator[tuple[int, LedgerFact]]:
    for piece in turn.pieces:
        for start, end in _sentences(piece):
            said = piece.text[start:end]
            if pattern := _durable(said):
                span = TextSpan(piece.offset(start), piece.offset(end))
                yield pattern.strength, LedgerFact(said, pattern.category, turn.origin, span, turn.speaker, turn.at)


def _sentences(piece: Piece) -> Iterator[tuple[int, int]]:
    """Return the spans of sentences outside of code, without list markers."""
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


WINDOW_CHARS = 16_000
"""About 4,000 tokens: a size that small local models can read, and large ones without missing the middle."""

OVERLAP_TURNS = 2
"""Keeps an answer with its question."""

SAME_FACT_SIMILARITY = 0.92
"""Cosine from which two facts from one place of the transcript are the same."""

_WHEN = re.compile(r"([0-9]{4})(?:-([0-9]{2}))?")


@dataclass(frozen=True, slots=True)
class Source:
    """The transcript of an extraction, with scope and guidance.

    :param scope: Narrowed to the extraction's source.
    """

    scope: Scope
    transcript: Transcript
    document_at: datetime | None
    guidance: Guidance


@dataclass(frozen=True, slots=True)
class Proposed:
    rows: tuple[FactRow, ...]
    calls: tuple[JsonObject, ...]


def propose(
    engine: MemoryEngine, provider: LLMProvider, source: Source, window: Window, known: Sequence[FactRow]
) -> Proposed:
    """Ask the model for the facts of one window.

    :param known: The ledger so far, in order.
    :raises LLMError: If there is no usable answer.
    """
    name = PROPOSE_ALL if source.guidance.keep_all else PROPOSE
    question = prompt(name, window.text, further=source.guidance.for_facts())
    asked = ask(provider, EXTRACT, question, Proposals, "facts", ProposedFact)
    reader = _Reader(engine, source, window)
    made = [reader.row(item, over=at >= source.guidance.max_facts) for at, item in enumerate(asked.items)]
    made += [reader.broken(item) for item in asked.broken]
    call = {**asked.call, "shortened": reader.shortened} if reader.shortened else asked.call
    return Proposed(_numbered(engine, made, known), (call,))


def propose_without_model(engine: MemoryEngine, source: Source) -> Proposed:
    """Return the sentences that state something durable, verbatim."""
    reader = _Reader(engine, source, None)
    found = durable_facts(source.transcript, max_facts=source.guidance.fallback_max_facts)
    return Proposed(_numbered(engine, [reader.kept(fact) for fact in found], ()), ())


def _numbered(engine: MemoryEngine, made: Sequence[FactRow], known: Sequence[FactRow]) -> tuple[FactRow, ...]:
    """Number the rows after the known ones, and skip facts that the ledger already has."""
    kept = [(row.ordinal, row.fact) for row in known if row.stage is FactStage.PROPOSED and row.fact is not None]
    first = {words_key(fact.text): ordinal for ordinal, fact in reversed(kept)}
    again = _paraphrases(engine, made, kept)
    rows: list[FactRow] = []
    for at, row in enumerate(made):
        row = replace(row, ordinal=len(known) + at)
        if row.stage is FactStage.PROPOSED and row.fact is not None:
            same = again.get(at, first.setdefault(words_key(row.fact.text), row.ordinal))
            if same != row.ordinal:
                row = replace(row, stage=FactStage.SKIPPED, outcome=skipped("repeated", fact_index=same))
        rows.append(row)
    return tuple(rows)


def _paraphrases(
    engine: MemoryEngine, made: Sequence[FactRow], kept: Sequence[tuple[int, LedgerFact]]
) -> dict[int, int]:
    """Return, by index of a row, the earlier fact that it paraphrases.

    Both come from one place of the transcript, which two windows show, have the same figures, and are similar.
    """
    fresh = [(at, row.fact) for at, row in enumerate(made) if row.stage is FactStage.PROPOSED and row.fact is not None]
    pairs = [
        (at, fact, ordinal, other)
        for at, fact in fresh
        for ordinal, other in kept
        if _one_place(fact, other) and figures(fact.text) == figures(other.text)
    ]
    texts = list(dict.fromkeys(fact.text for _, one, _, other in pairs for fact in (one, other)))
    vectors = dict(zip(texts, unit_vectors(prepared(engine, texts)), strict=True))
    found: dict[int, tuple[float, int]] = {}
    for at, fact, ordinal, other in pairs:
        likeness = cosine(vectors[fact.text], vectors[other.text])
        if likeness >= SAME_FACT_SIMILARITY:
            found[at] = max(found.get(at, (0.0, 0)), (likeness, ordinal))
    return {at: ordinal for at, (_, ordinal) in found.items()}


def _one_place(one: LedgerFact, other: LedgerFact) -> bool:
    if one.span is None or other.span is None:
        return False
    return one.span.start < other.span.end and other.span.start < one.span.end


class _Reader:
    """Converts a model's answer for one window to rows; `window` is None if no model was called.

    `shortened` counts the facts that were too long.
    """

    def __init__(self, engine: MemoryEngine, source: Source, window: Window | None) -> None:
        self._strict = engine.screening.applied(source.scope)
        self._lenient = engine.screening.applied(source.scope, refuse=False)
        self._source = source
        self.shortened = 0
        self._first = min(window.numbers) if window else 0
        self._turns = source.transcript.turns[self._first : max(window.numbers) + 1] if window else ()

    def row(self, item: ProposedFact, *, over: bool) -> FactRow:
        """:param over: True if the limit is exceeded; such a fact is not located in the transcript."""
        if over:
            fact = LedgerFact(" ".join(item.text.split()), item.category, OriginClass.INFERRED)
            return FactRow(0, FactStage.SKIPPED, self._cut(fact), outcome=skipped("over_limit"))
        fact, recalled = self._placed(item)
        if recalled:
            return FactRow(0, FactStage.SKIPPED, self._cut(fact), outcome=skipped("recalled"))
        return self.kept(fact)

    def kept(self, fact: LedgerFact) -> FactRow:
        """Return the fact as it may be stored."""
        try:
            _screened(self._strict, fact)
        except PersonalDataRejected as rejected:
            return FactRow(0, FactStage.SKIPPED, self._cut(fact), outcome=skipped(rejected.code))
        return FactRow(0, FactStage.PROPOSED, self._cut(fact))

    def broken(self, item: Broken) -> FactRow:
        """Convert a malformed item, with as much of its text as can be read."""
        fact = LedgerFact(text_in(item.value), Category.DETAIL, OriginClass.INFERRED)
        return FactRow(0, FactStage.FAILED, self._cut(fact), outcome=error(item.reason))

    def _cut(self, fact: LedgerFact) -> LedgerFact:
        text = _screened(self._lenient, fact)
        short = shortened(text, self._source.guidance.max_fact_chars)
        self.shortened += short != text
        return replace(fact, text=short)

    def _placed(self, item: ProposedFact) -> tuple[LedgerFact, bool]:
        """Locate the fact in the transcript; True if it occurs only in recalled text."""
        transcript = self._source.transcript
        text = " ".join(item.text.split())
        said_at = day_of(item.when)
        quote = find_quote(self._turns, item.quote) if item.quote.strip() else None
        if quote is None:
            recalled = any(in_removed(transcript, words) for words in (item.quote, text) if words.strip())
            origin = OriginClass.RECALLED if recalled else OriginClass.INFERRED
            return LedgerFact(text, item.category, origin, event_at=said_at or self._source.document_at), recalled
        turn = self._turns[quote.turn]
        event_at = said_at or turn.at or self._source.document_at
        return LedgerFact(text, item.category, turn.origin, quote.span, turn.speaker, event_at), False


def _screened(policy: AppliedPolicy, fact: LedgerFact) -> str:
    return policy.text(fact.text)


def shortened(text: str, max_chars: int) -> str:
    """Return the text, cut at the end of a word if it is too long."""
    if len(text) <= max_chars:
        return text
    head = text[: max_chars - 1]
    words, blank, _ = head.rpartition(" ")
    return f"{words.rstrip() if blank and len(words) > max_chars // 2 else head}…"


def day_of(when: str | None) -> datetime | None:
    """Parse a time that a model wrote; a year or month means its first day. None if it is no time."""
    written = (when or "").strip()
    if partial := _WHEN.fullmatch(written):
        written = f"{partial[1]}-{partial[2] or '01'}-01"
    try:
        at = datetime.fromisoformat(written)
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return at if MIN_YEAR <= at.year <= MAX_YEAR else None


MIN_YEAR, MAX_YEAR = 1000, 2999
"""Range of years that is accepted as a date."""
