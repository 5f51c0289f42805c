"""The first stage: from one window of a transcript to rows of the ledger, each with where it was said and by whom.

The model says what and quotes; where the quote stands, whose word it is and whether it was recalled is found here.
Invariant: each item of an answer is one row, also those that are not kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from llm_provider import LLMProvider
from memory_engine import MemoryEngine
from souvenir.decisions import Category, Fact, FactRow, FactStage
from souvenir.engine.screening import AppliedPolicy
from souvenir.errors import PersonalDataRejected
from souvenir.extraction.asking import EXTRACT, ask, text_in
from souvenir.extraction.fallback import durable_facts
from souvenir.extraction.guidance import Guidance
from souvenir.extraction.nearness import cosine, figures, unit_vectors, words_key
from souvenir.extraction.outcomes import error, skipped
from souvenir.extraction.preparing import prepared
from souvenir.extraction.prompts import PROPOSE, PROPOSE_ALL, prompt
from souvenir.extraction.quotes import find_quote, in_removed
from souvenir.extraction.shapes import Proposals, ProposedFact
from souvenir.extraction.turns import Transcript
from souvenir.extraction.windows import Window
from souvenir.llm.salvage import Broken
from souvenir.types import JsonObject, OriginClass, Scope

WINDOW_CHARS = 16_000
"""About 4,000 tokens: what small local models read, and what large ones read without passing over the middle."""

OVERLAP_TURNS = 2
"""An answer is not parted from its question."""

SAME_FACT_SIMILARITY = 0.92
"""Cosine from which two facts of one place of the transcript are one."""

_WHEN = re.compile(r"([0-9]{4})(?:-([0-9]{2}))?")


@dataclass(frozen=True, slots=True)
class Source:
    """What is learned from, and on whose behalf.

    :param scope: As narrow as the extraction is.
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
    """Ask for the facts of one window.

    :param known: The ledger so far, in its order.
    :raises LLMError: If there is no answer that can be used.
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
    """The sentences that state something durable, as they were said."""
    reader = _Reader(engine, source, None)
    found = durable_facts(source.transcript, max_facts=source.guidance.fallback_max_facts)
    return Proposed(_numbered(engine, [reader.kept(fact) for fact in found], ()), ())


def _numbered(engine: MemoryEngine, made: Sequence[FactRow], known: Sequence[FactRow]) -> tuple[FactRow, ...]:
    """The rows behind those that are known, without facts that stand there already."""
    kept = [(row.ordinal, row.fact) for row in known if row.stage is FactStage.PROPOSED and row.fact is not None]
    told = {words_key(fact.text): ordinal for ordinal, fact in reversed(kept)}
    again = _said_again(engine, made, kept)
    rows: list[FactRow] = []
    for at, row in enumerate(made):
        row = replace(row, ordinal=len(known) + at)
        if row.stage is FactStage.PROPOSED and row.fact is not None:
            same = again.get(at, told.setdefault(words_key(row.fact.text), row.ordinal))
            if same != row.ordinal:
                row = replace(row, stage=FactStage.SKIPPED, outcome=skipped("repeated", fact_index=same))
        rows.append(row)
    return tuple(rows)


def _said_again(engine: MemoryEngine, made: Sequence[FactRow], kept: Sequence[tuple[int, Fact]]) -> dict[int, int]:
    """By the place of a row, the earlier fact that says the same in other words.

    Both are of one place of the transcript, which two windows show, have the same figures, and are near.
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


def _one_place(one: Fact, other: Fact) -> bool:
    if one.span is None or other.span is None:
        return False
    return one.span.start < other.span.end and other.span.start < one.span.end


class _Reader:
    """Makes rows of what a model says of one window; `window` is None where no model was asked.

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
        """:param over: Whether there are more of them than may be; then nobody looks where they were said."""
        if over:
            fact = Fact(" ".join(item.text.split()), item.category, OriginClass.INFERRED)
            return FactRow(0, FactStage.SKIPPED, self._cut(fact), outcome=skipped("over_limit"))
        fact, recalled = self._placed(item)
        if recalled:
            return FactRow(0, FactStage.SKIPPED, self._cut(fact), outcome=skipped("recalled"))
        return self.kept(fact)

    def kept(self, fact: Fact) -> FactRow:
        """The fact as it may be stored."""
        try:
            _screened(self._strict, fact)
        except PersonalDataRejected as rejected:
            return FactRow(0, FactStage.SKIPPED, self._cut(fact), outcome=skipped(rejected.code))
        return FactRow(0, FactStage.PROPOSED, self._cut(fact))

    def broken(self, item: Broken) -> FactRow:
        """An item that does not fit, with as much of its text as there is."""
        fact = Fact(text_in(item.value), Category.DETAIL, OriginClass.INFERRED)
        return FactRow(0, FactStage.FAILED, self._cut(fact), outcome=error(item.reason))

    def _cut(self, fact: Fact) -> Fact:
        text = _screened(self._lenient, fact)
        short = shortened(text, self._source.guidance.max_fact_chars)
        self.shortened += short != text
        return replace(fact, text=short)

    def _placed(self, item: ProposedFact) -> tuple[Fact, bool]:
        """The fact with what the transcript says of it, and whether it only stands in what was recalled."""
        transcript = self._source.transcript
        text = " ".join(item.text.split())
        said_at = day_of(item.when)
        quote = find_quote(self._turns, item.quote) if item.quote.strip() else None
        if quote is None:
            recalled = any(in_removed(transcript, words) for words in (item.quote, text) if words.strip())
            origin = OriginClass.RECALLED if recalled else OriginClass.INFERRED
            return Fact(text, item.category, origin, event_at=said_at or self._source.document_at), recalled
        turn = self._turns[quote.turn]
        event_at = said_at or turn.at or self._source.document_at
        return Fact(text, item.category, turn.origin, quote.span, turn.speaker, event_at), False


def _screened(policy: AppliedPolicy, fact: Fact) -> str:
    return policy.text(fact.text)


def shortened(text: str, max_chars: int) -> str:
    """The text, if it is too long cut at the end of a word."""
    if len(text) <= max_chars:
        return text
    head = text[: max_chars - 1]
    words, blank, _ = head.rpartition(" ")
    return f"{words.rstrip() if blank and len(words) > max_chars // 2 else head}…"


def day_of(when: str | None) -> datetime | None:
    """A time as a model writes it, a year or a month being its first day; None if it is none."""
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
"""Of what is believed to be a date."""
