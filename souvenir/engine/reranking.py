"""The second look of a search: the best of the first ranking, ordered anew by a cross-encoder if there is one.

It is an extra. If it is late or fails, the first ranking is the answer, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

import structlog

from souvenir.deadlines import Deadline, time_left
from souvenir.engine.recall import Found
from souvenir.observation.instruments import Instruments, Stage
from souvenir.search.ranking import Ranked
from souvenir.search.reranking import RERANK, reranked
from souvenir.settings import Settings
from souvenir.store import reads
from souvenir.store.database import Database
from souvenir.types import Reranker, SearchQuery

NO_TEXTS: Mapping[int, str] = MappingProxyType({})

log = structlog.get_logger(__name__)


class Reranking:
    """Safe to call from any thread.

    A search by meaning or by words alone is left as it is, since its order is what was asked for, and so is a question
    for one thing by its name (a hash, a serial number), which models of language do not read.

    :param reranker: None leaves every search as it is.
    """

    def __init__(
        self, settings: Settings, reranker: Reranker | None, database: Database, instruments: Instruments
    ) -> None:
        self._reranker = reranker
        self._candidate_count = settings.rerank_candidates
        self._deadline_s = settings.rerank_deadline_ms / 1000
        self._database = database
        self._instruments = instruments

    def first(self, query: SearchQuery) -> SearchQuery:
        """The query whose ranking `second` wants: with enough results to choose from."""
        if self._reranker is None or not _is_reranked(query):
            return query
        return replace(query, top_k=max(query.top_k, self._candidate_count))

    def second(self, found: Found, query: SearchQuery, namespace_id: int, texts: Mapping[int, str] = NO_TEXTS) -> Found:
        """What was found for `first(query)`, in its new order, and as many as the query asks for.

        :param texts: Of passages that are not stored, by id.
        """
        if self._reranker is None or not _is_reranked(query):
            return found
        if not found.legible:
            return replace(found, query=query, ranked=found.ranked[: query.top_k])
        with self._instruments.stage(Stage.SEARCH_RERANK):
            scores = self._scores(self._reranker, found, query.text, namespace_id, texts)
        degraded = found.degraded
        if scores is None:
            self._instruments.degraded(RERANK)
            degraded = (*degraded, RERANK)
        ranked = found.ranked if scores is None else reranked(found.ranked, scores, query.weights)
        return replace(found, query=query, ranked=ranked[: query.top_k], degraded=degraded)

    def _scores(
        self, reranker: Reranker, found: Found, text: str, namespace_id: int, unstored: Mapping[int, str]
    ) -> Mapping[int, float] | None:
        """By index in the evidence, of those that are still there; None if they cannot be had in time."""
        # Half of what the request has left at most: its answer shall come, and a batch has other searches to make.
        until = Deadline(time_left(2 * self._deadline_s) / 2)
        best = found.ranked[: self._candidate_count]
        try:
            texts = self._texts(found, best, namespace_id, unstored)
            read = [one.index for one in best if one.index in texts]
            scores = reranker.scores(text, [texts[index] for index in read], timeout_s=until.left_s) if read else ()
        except TimeoutError:
            log.info("reranking_late", deadline_ms=round(until.timeout_s * 1000), candidates=len(best))
            return None
        except Exception:
            # The boundary of an extra: the first ranking is of use without it.
            log.exception("reranking_failed")
            return None
        return dict(zip(read, scores, strict=True))

    def _texts(
        self, found: Found, best: Sequence[Ranked], namespace_id: int, unstored: Mapping[int, str]
    ) -> Mapping[int, str]:
        passage_ids = {one.index: int(found.candidates.passage_ids[one.index]) for one in best}
        with self._database.read() as connection:
            stored = {**unstored, **reads.passage_texts(connection, namespace_id, passage_ids.values())}
        return {index: stored[passage_id] for index, passage_id in passage_ids.items() if passage_id in stored}


def _is_reranked(query: SearchQuery) -> bool:
    return query.hybrid and not query.words_only
