"""The first stage of an extraction: from one window of a transcript to rows of the ledger, with quote and speaker.

The model proposes facts and quotes them; this stage locates the quote, the speaker and recalled text. Invariant: each
item of an answer is one row, including rejected ones.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from souvenir.core.errors import PersonalDataRejected
from souvenir.core.ledger import Category, FactRow, FactStage, LedgerFact
from souvenir.core.types import JsonObject, OriginClass, Scope
from souvenir.learning.durable_sentences import durable_facts
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
from souvenir.learning.transcripts.turns import Transcript
from souvenir.learning.transcripts.windows import Window
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.similarity import cosine, figures, unit_vectors, words_key
from souvenir.models.llm.provider import LLMProvider
from souvenir.models.llm.salvage import Broken
from souvenir.privacy.screening import AppliedPolicy

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
