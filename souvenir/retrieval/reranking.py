"""Re-ranking: an optional cross-encoder orders the best results of the first ranking.

If it is late or fails, the first ranking is returned, and the result reports that. The cross-encoder scores the meaning
of a text. The parts of the score that do not depend on the text keep their weights: times, and the caller's own
weights. Feedback changes the new score by the same share as the first one. Results that it did not score follow in
their previous order.

The probability of a scored result is the cross-encoder's own: the logistic of its raw score. How well that is
calibrated depends on the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp
from time import monotonic

import structlog

from souvenir.core.concurrency import left_until_due, time_left
from souvenir.core.settings import Settings
from souvenir.core.telemetry import Instruments, Stage
from souvenir.core.types import Reranker, SearchQuery, Weights
from souvenir.retrieval.probability import DECIMALS, descending
from souvenir.retrieval.ranking import Ranked
from souvenir.retrieval.relevance import Found
from souvenir.store.database import Database
from souvenir.store.memories import reads

RERANK = "rerank"

NOT_IN_THE_TEXT = ("recency", "confidence", "period", "day", "tags")
"""Parts of the first score that do not depend on the text."""

ROLE = "role"
"""Independent of the text too, but kept only if the caller weights it: its default fits the two arms' scores."""

FEEDBACK, FACTS = "feedback", "facts"
"""Parts of the first score: a share of the others, and what a memory gains by its facts after that."""

log = structlog.get_logger(__name__)


class Reranking:
    """Re-orders hybrid rankings; thread-safe.

    A search by meaning or by words alone keeps its order, as requested. So does a query for an identifier (a hash, a
    serial number), which language models cannot interpret.
    """

    def __init__(self, settings: Settings, reranker: Reranker, database: Database, instruments: Instruments) -> None:
        self._reranker = reranker
        self._candidate_count = settings.rerank_candidates
        self._deadline_s = settings.rerank_deadline_ms / 1000
        self._database = database
        self._instruments = instruments

    def enlarged(self, query: SearchQuery) -> SearchQuery:
        """Return the query with enough results for `reordered` to choose from, whatever their score."""
        return replace(query, top_k=max(query.top_k, self._candidate_count), min_score=None)

    def reordered(self, found: Found, query: SearchQuery, namespace_id: int, texts: Mapping[int, str]) -> Found:
        """Return the results of `enlarged(query)` in their new order, as many as the query asks for.

        :param texts: Texts of passages that are not stored, by id.
        """
        if not found.legible:
            return replace(found, query=query, ranked=_best(found.ranked, query))
        # At most half of the time left: the response is still to be built, and a batch has more searches.
        timeout_s = time_left(2 * self._deadline_s) / 2
        due_s = left_until_due() / 2
        with self._instruments.stage(Stage.SEARCH_RERANK):
            scores = self._scores(found, query.text, namespace_id, texts, min(timeout_s, due_s)) if due_s > 0 else None
        degraded = found.degraded
        if scores is None:
            (self._instruments.omitted if due_s < timeout_s else self._instruments.degraded)(RERANK)
            degraded = (*degraded, RERANK)
        ranked = found.ranked if scores is None else reranked(found.ranked, scores, query.weights)
        return replace(found, query=query, ranked=_best(ranked, query), degraded=degraded)

    def _scores(
        self, found: Found, text: str, namespace_id: int, unstored: Mapping[int, str], timeout_s: float
    ) -> Mapping[int, float] | None:
        """Return raw scores by index in the evidence, of passages that still exist; None on timeout or failure."""
        end = monotonic() + timeout_s
        best = found.ranked[: self._candidate_count]
        try:
            texts = self._texts(found, best, namespace_id, unstored)
            read = [one.at for one in best if one.at in texts]
            passages = [texts[index] for index in read]
            scores = self._reranker.scores(text, passages, timeout_s=end - monotonic()) if read else ()
        except TimeoutError:
            log.info("reranking_late", deadline_ms=round(timeout_s * 1000), candidates=len(best))
            return None
        except Exception:
            # The boundary of an optional step: the first ranking is valid without it.
            log.exception("reranking_failed")
            return None
        return dict(zip(read, scores, strict=True))

    def _texts(
        self, found: Found, best: Sequence[Ranked], namespace_id: int, unstored: Mapping[int, str]
    ) -> Mapping[int, str]:
        passage_ids = {one.at: int(found.candidates.passage_ids[one.at]) for one in best}
        with self._database.read() as connection:
            stored = {**unstored, **reads.passage_texts(connection, namespace_id, passage_ids.values())}
        return {index: stored[passage_id] for index, passage_id in passage_ids.items() if passage_id in stored}


def _best(ranked: Sequence[Ranked], query: SearchQuery) -> list[Ranked]:
    return descending([one for one in ranked if one.probability >= (query.min_score or 0.0)])[: query.top_k]


def reranked(ranked: Sequence[Ranked], scores: Mapping[int, float], weights: Weights) -> list[Ranked]:
    """Return the ranking with scored results first, by ``1 / (1 + exp(-score)) + parts independent of the text``.

    That sum is multiplied by what feedback multiplied the first score by.

    The others follow with their first scores, shifted so that none is above 0 or above a scored one. The part `rerank`
    is the difference between the new score and the sum of the other parts.

    :param ranked: Best first. :param scores: The cross-encoder's raw scores, by index in the evidence.
    """
    kept = NOT_IN_THE_TEXT if weights.role is None else (*NOT_IN_THE_TEXT, ROLE)
    read = sorted((_read(one, scores[one.at], kept) for one in ranked if one.at in scores), key=_by_score)
    others = [one for one in ranked if one.at not in scores]
    most = min(0.0, read[-1].score) if read else 0.0
    return read + [_scored(one, one.score - others[0].score + most) for one in others]


def _read(one: Ranked, score: float, kept: Sequence[str]) -> Ranked:
    weighed = sum(one.parts.get(name, 0.0) for name in kept)
    likely = logistic(score)
    by_feedback = one.parts.get(FEEDBACK, 0.0)
    share = by_feedback / sum(one.parts[name] for name in one.parts.keys() - {FEEDBACK, FACTS}) if by_feedback else 0.0
    scored = _scored(one, (likely + weighed) * (1.0 + share))
    return scored._replace(rerank_score=score, probability=round(likely, DECIMALS))


def _scored(one: Ranked, score: float) -> Ranked:
    of_parts = sum(one.parts.values())
    return one._replace(score=score, parts={**one.parts, RERANK: score - of_parts})


def _by_score(one: Ranked) -> tuple[float, float]:
    """Sort key, best first; far from 0 the logistics of two raw scores are the same number."""
    return -one.score, -(one.rerank_score or 0.0)


def logistic(value: float) -> float:
    """``1 / (1 + exp(-value))`` for any number."""
    return 1.0 / (1.0 + exp(-value)) if value >= 0 else exp(value) / (1.0 + exp(value))
