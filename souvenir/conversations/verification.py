"""Verification: a reader says whether the passages that a search found answer the question, and with which words.

The reader is the configured language model or, without one, the cross-encoder that re-ranks. Without a reader, and with
one that is down, late or wrong, the verdict is `unknown` with a reason; the search is never lost. A caller's place, a
lock or a connection is not held while a reader works.

A language model's `yes` counts only with a quote that occurs in a passage, found as extraction finds quotes; the words
of the passage are returned, not the model's. Passages are screened by the privacy policy and fenced, and a verdict is
all that a passage with instructions in it could change. `no` is said of all passages of a complete search only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from threading import BoundedSemaphore
from time import monotonic
from typing import Annotated, Any, Protocol

from pydantic import BaseModel, BeforeValidator

from souvenir.conversations.agent_search import AnyHit
from souvenir.conversations.concurrent_parts import TimedParts
from souvenir.conversations.context import DEFAULT_DEADLINE_S, Context, ContextQuery
from souvenir.conversations.context_text import ELLIPSIS, part_shown
from souvenir.conversations.message_search import MessageHit
from souvenir.core.concurrency import awaited, deadline, leave_place, left_until_due, time_left
from souvenir.core.errors import DeadlineExceeded, SouvenirError
from souvenir.core.text import defuse, fenced, sentences
from souvenir.core.timestamps import utc_now
from souvenir.core.types import Reranker, Scope
from souvenir.learning.quotes import find_quote
from souvenir.learning.transcripts.turns import Piece, Transcript, TranscriptTurn, TurnRole
from souvenir.learning.transcripts.windows import FRAME, windows
from souvenir.memories.engine import MemoryEngine
from souvenir.models.llm.prompts import prompt_of
from souvenir.models.llm.provider import LLMProvider
from souvenir.retrieval.reranking import logistic
from souvenir.store.messages.blocks import Block

DEFAULT_READING_S = DEFAULT_DEADLINE_S

MAX_READS = 16
"""Maximum number of questions that wait for the reader at a time."""

SHARE_OF_TIME = 0.9
"""Share of the request's remaining time that the reader gets; the rest is for the response."""

MAX_CHARS = 40_000
"""Maximum length of all passages together, about 10,000 tokens; further ones are not read."""

MAX_PASSAGE_CHARS = 4_000
"""Maximum length of a passage; of a longer one, the part with most terms of the question is read."""

MAX_QUOTE_CHARS = 500

LIKELY, UNLIKELY = 0.5, 0.05
"""Logistic of a cross-encoder's score from which its best passage answers, and below which none does. Its scores mean
that a passage is relevant; the bounds are those of models trained with binary cross-entropy, and were not measured.
"""

MAX_SENTENCES = 32
"""Maximum number of sentences of the best passage that a cross-encoder scores."""

NOT_CONFIGURED = "There is no reader; set EXTRACT_PROVIDER or RERANK_MODEL"
BUSY = "Too many questions are being read; try again in a moment"
LATE = "The reader did not answer before the deadline"
FAILED = "The reader failed; the service's log has the cause"
UNSURE = "The reader cannot tell"
NOT_QUOTED = "The reader says yes, but the words that it quotes are in no passage"
DROPPED = "dropped"
"""The entry in `degraded` of a context whose budget did not fit all results."""

INCOMPLETE = "What was read holds no answer, but not everything could be searched or read"

_PROMPT = "verify"
_FOLDER = Path(__file__).with_name("prompts")
_QUESTION = "question"
_NO_DEADLINE_S = 3_600.0


class Answered(StrEnum):
    """The verdict of a reader."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Verdict:
    """:param quote: Words of a passage that answer, if it is yes. :param reason: Why it is unknown."""

    answered: Answered
    quote: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """:param at: When it was said or happened; None if that is unknown, or if it has no time."""

    text: str
    at: datetime | None = None
    speaker: str | None = None
    role: TurnRole = TurnRole.UNKNOWN


def passages_of(hits: Iterable[AnyHit], blocks: Iterable[Block] = ()) -> list[Passage]:
    """Return the passages of blocks and hits."""
    found = [Passage(block.value) for block in blocks if block.value.strip()]
    for hit in hits:
        if isinstance(hit, MessageHit):
            said = hit.message
            found.append(Passage(said.content, said.created_at, said.speaker, TurnRole(said.role.value)))
        else:
            found.append(Passage(hit.memory.text, hit.memory.occurred_at))
    return found


@dataclass(frozen=True, slots=True)
class Material:
    """The input of a reader.

    :param shown: Of each passage all or, if it is long, a part. :param complete: Whether nothing was left out.
    :param asked_at: When the question is asked, for times such as `yesterday` in it.
    """

    question: str
    passages: Sequence[Passage]
    shown: Sequence[str]
    complete: bool
    asked_at: datetime

    @property
    def no(self) -> Verdict:
        """The verdict if no passage answers."""
        return Verdict(Answered.NO) if self.complete else _unknown(INCOMPLETE)


class Reader(Protocol):
    """Thread-safe; works within the deadline of its thread."""

    def read(self, scope: Scope, material: Material) -> Verdict:
        """:raises SouvenirError: If it cannot; the message says why."""
        ...


class Verification:
    """Thread-safe.

    :param provider: Preferred to the re-ranker, which cannot tell a relevant passage from an answer.
    :param candidates: Maximum number of passages that the re-ranker reads.
    """

    def __init__(
        self, engine: MemoryEngine, provider: LLMProvider | None, reranker: Reranker | None, *, candidates: int
    ) -> None:
        self._engine = engine
        self._reader: Reader | None = None
        if provider is not None:
            self._reader = ModelReader(engine, provider)
        elif reranker is not None:
            self._reader = CrossEncoderReader(reranker, candidates)
        self._slots = BoundedSemaphore(MAX_READS)
        self._in_time = TimedParts()

    def read(
        self,
        scope: Scope,
        question: str,
        passages: Sequence[Passage],
        *,
        degraded: Sequence[str] = (),
        asked_at: datetime | None = None,
        timeout_s: float | None = None,
    ) -> Verdict:
        """Return whether the passages answer the question; never fails.

        :param passages: Best first. :param degraded: What the search lacked.
        :param timeout_s: None: until the answer is due, or `DEFAULT_READING_S` if it is not.
        """
        if self._reader is None:
            return _unknown(NOT_CONFIGURED)
        if not passages:
            return _unknown(INCOMPLETE) if degraded else Verdict(Answered.NO)
        if not self._slots.acquire(blocking=False):
            return _unknown(BUSY)
        try:
            leave_place()
            read = partial(self._read, self._reader, scope, question, passages, asked_at, complete=not degraded)
            if timeout_s is None:
                due_s = left_until_due()
                timeout_s = DEFAULT_READING_S if due_s == math.inf else due_s
            with deadline(min(timeout_s, SHARE_OF_TIME * time_left(_NO_DEADLINE_S))):
                return awaited(self._in_time.start("reading", read))
        except DeadlineExceeded:
            return _unknown(LATE)
        except SouvenirError as error:
            return _unknown(error.message)
        except Exception:  # noqa: BLE001 - the boundary of an optional part, whose failure `TimedParts` logged
            return _unknown(FAILED)
        finally:
            self._slots.release()

    def of_context(self, scope: Scope, query: ContextQuery, context: Context, *, began: float) -> Verdict:
        """Return whether a context's text answers its query, within the rest of the query's deadline.

        :param began: When the context was begun, by the monotonic clock.
        """
        passages = passages_of(context.shown, context.blocks)
        dropped = [DROPPED] if context.dropped.messages or context.dropped.memories else []
        left_s = query.deadline_s - (monotonic() - began)
        degraded = [*context.degraded, *dropped]
        return self.read(scope, query.text, passages, degraded=degraded, asked_at=query.as_of, timeout_s=left_s)

    def _read(
        self,
        reader: Reader,
        scope: Scope,
        question: str,
        passages: Sequence[Passage],
        asked_at: datetime | None,
        *,
        complete: bool,
    ) -> Verdict:
        terms_of = self._engine.analyser.terms
        asked, left, shown = frozenset(terms_of(question)), MAX_CHARS, list[str]()
        for passage in passages:
            part = part_shown(passage.text, asked, terms_of, MAX_PASSAGE_CHARS)
            left -= len(part)
            if left < 0:
                break
            shown.append(part)
        complete = complete and shown == [passage.text for passage in passages]
        return reader.read(scope, Material(question, passages[: len(shown)], shown, complete, asked_at or utc_now()))


# --- the language model ----------------------------------------------------------------------------------------------


def _lower(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


class ReadAnswer(BaseModel):
    """The output of the model; the quote comes first, so that it is looked for before the model decides."""

    quote: str = ""
    answered: Annotated[Answered, BeforeValidator(_lower)]


class ModelReader:
    """Asks a language model, and checks its quote."""

    def __init__(self, engine: MemoryEngine, provider: LLMProvider) -> None:
        self._engine = engine
        self._provider = provider

    def read(self, scope: Scope, material: Material) -> Verdict:
        policy = self._engine.screening.applied(scope, refuse=False)
        turns = [
            _turn(passage, policy.text(text), None if passage.speaker is None else policy.text(passage.speaker))
            for passage, text in zip(material.passages, material.shown, strict=True)
        ]
        # Indentation and numbers may double the length of short lines; all passages are in one window.
        parts = windows(Transcript("", tuple(turns), ()), max_chars=100 * MAX_CHARS, overlap_turns=0)
        shown = defuse("".join(part.text for part in parts), name=_QUESTION)
        question = fenced(defuse(policy.text(material.question), name=FRAME), name=_QUESTION)
        asked = f"Asked on {material.asked_at.date().isoformat()}:\n{question}{shown}"
        answer = self._provider.generate(prompt_of(_FOLDER, _PROMPT, asked), ReadAnswer).value
        match answer.answered:
            case Answered.YES:
                return self._quoted(answer.quote, material.passages)
            case Answered.NO:
                return material.no
        return _unknown(UNSURE)

    def _quoted(self, quote: str, passages: Sequence[Passage]) -> Verdict:
        found = find_quote([_turn(passage, passage.text) for passage in passages], quote)
        if found is None:
            return _unknown(NOT_QUOTED)
        return _yes(passages[found.turn].text[found.span.start : found.span.end])


def _turn(passage: Passage, text: str, speaker: str | None = None) -> TranscriptTurn:
    return TranscriptTurn(passage.role, speaker, passage.at, (Piece(0, len(text), text),))


# --- the cross-encoder -----------------------------------------------------------------------------------------------


class CrossEncoderReader:
    """Takes the best passage for the answer if its score is high."""

    def __init__(self, reranker: Reranker, candidates: int) -> None:
        self._reranker = reranker
        self._candidates = candidates

    def read(self, scope: Scope, material: Material) -> Verdict:
        passages = material.passages[: self._candidates]
        texts = [
            text if passage.speaker is None else f"{passage.speaker}: {text}"
            for passage, text in zip(passages, material.shown, strict=False)
        ]
        best, score = self._best(material.question, texts)
        if (likely := logistic(score)) >= LIKELY:
            return _yes(self._sentence(material.question, material.shown[best].strip(ELLIPSIS)))
        if likely < UNLIKELY:
            return material.no if len(passages) == len(material.passages) else _unknown(INCOMPLETE)
        return _unknown(UNSURE)

    def _sentence(self, question: str, text: str) -> str:
        """Return the best sentence of a passage."""
        found = [said for start, end in sentences(text)[:MAX_SENTENCES] if (said := text[start:end].strip())]
        return found[self._best(question, found)[0]] if len(found) > 1 else text

    def _best(self, question: str, texts: Sequence[str]) -> tuple[int, float]:
        """Return the index of the best text, and its score."""
        timeout_s = time_left(_NO_DEADLINE_S)
        try:
            scores = self._reranker.scores(question, texts, timeout_s=timeout_s)
        except TimeoutError as error:
            raise DeadlineExceeded(timeout_s) from error
        best = max(range(len(scores)), key=scores.__getitem__)
        return best, scores[best]


def _yes(quote: str) -> Verdict:
    words = quote.strip()
    if len(words) > MAX_QUOTE_CHARS:
        words = words[:MAX_QUOTE_CHARS].rsplit(None, 1)[0]
    return Verdict(Answered.YES, quote=words)


def _unknown(reason: str) -> Verdict:
    return Verdict(Answered.UNKNOWN, reason=reason)
