"""The ranking: what each part of the sum gives to each passage that somebody sees, and each owner's best passage."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from souvenir.core.labels import is_visible
from souvenir.core.types import (
    Embedder,
    Filters,
    MessageRole,
    Profile,
    SearchQuery,
    SourceFilter,
    SourceMatch,
    TurnFilter,
)
from souvenir.index.analyser import Analyser
from souvenir.retrieval.query_framing import asks_the_assistant, without_framing
from souvenir.retrieval.time_intent import TimeIntent, time_intent
from tests.reference import cues, tags, times
from tests.reference.constants import CONFIDENCE_HALF_LIFE_DAYS, FACTS_SHARE, MEAN_PRIOR_ROWS, TABLE, Constants
from tests.reference.late import late_interaction, query_tokens
from tests.reference.passages import Passages, SlowPassage
from tests.reference.words import Words


@dataclass(frozen=True, slots=True)
class SlowHit:
    owner_id: int
    score: float
    parts: Mapping[str, float]


class ReferenceSearch:
    """`passages` makes what is ranked from memories and messages."""

    def __init__(self, embedder: Embedder, analyser: Analyser) -> None:
        self.passages = Passages(embedder, analyser)
        self._embedder = embedder
        self._analyser = analyser

    def rank(
        self, stored: Sequence[SlowPassage], query: SearchQuery, now: datetime, *, paths: tuple[str, ...] | None = None
    ) -> list[SlowHit]:
        """Every owner that the filters allow, best first; statistics are those of all that the paths let be seen."""
        seen = [passage for passage in stored if is_visible(passage.source, paths)]
        if not seen:
            return []
        intent = time_intent(query.text, now) if query.auto_intent else None
        if intent is not None:
            query = times.limited(query, intent)
        asked = Asked(seen, query, self._embedder, self._analyser, now, intent)
        best: dict[int, SlowHit] = {}
        best_of: dict[tuple[int, bool], float] = {}
        for at, passage in enumerate(seen):
            similarity = cosine(passage.vector, asked.vector)
            if (
                not any(passage.chunks)
                or not allowed(passage, query.filters)
                or (query.threshold is not None and similarity < query.threshold and not asked.by_words(at))
            ):
                continue
            parts = asked.parts(at) if query.hybrid else {"similarity": similarity}
            if tags.named(passage.tags, query.text, query.filters):
                parts["tags"] = tags.BOOST * max(sum(parts.values()), 0.0)
            hit = SlowHit(passage.owner_id, sum(parts.values()), parts)
            if passage.owner_id not in best or hit.score > best[passage.owner_id].score:
                best[passage.owner_id] = hit
            which = passage.owner_id, passage.of_fact
            best_of[which] = max(hit.score, best_of.get(which, hit.score))
        found = [together(hit, best_of) if query.hybrid else hit for hit in best.values()]
        return sorted(found, key=lambda hit: (-hit.score, hit.owner_id))


def together(hit: SlowHit, best_of: Mapping[tuple[int, bool], float]) -> SlowHit:
    """What is found by its text and by a fact gains a share of the lesser of the two."""
    kinds = [best_of.get((hit.owner_id, of_fact)) for of_fact in (False, True)]
    lesser = min((score for score in kinds if score is not None), default=0.0) if None not in kinds else 0.0
    gain = FACTS_SHARE * max(lesser, 0.0)
    return SlowHit(hit.owner_id, hit.score + gain, {**hit.parts, "facts": gain})


class Asked:
    """A query, and the statistics of the passages that it is asked of."""

    def __init__(
        self,
        passages: Sequence[SlowPassage],
        query: SearchQuery,
        embedder: Embedder,
        analyser: Analyser,
        now: datetime,
        intent: TimeIntent | None,
    ) -> None:
        self._passages = passages
        self._query = query
        self._now = now
        self._intent = intent or TimeIntent(())
        self._words = Words(passages)
        self._mean = np.sum([passage.vector for passage in passages], axis=0) / (len(passages) + MEAN_PRIOR_ROWS)
        self.vector = embedder.embed_query(query.text).astype(np.float64)
        self._unframed = embedder.embed_query(without_framing(query.text)).astype(np.float64)
        self._terms = self._words.repaired(
            analyser.query_words(query.text if intent is None or intent.words is None else intent.words)
        )
        speakers = {one.speaker for one in passages if one.profile is Profile.TALK and one.speaker is not None}
        names = {speaker: set(analyser.terms(speaker)) for speaker in speakers}
        self._terms_of_talk = [term for term in self._terms if not any(term in of for of in names.values())]
        named = [speaker for speaker, of in names.items() if of & set(self._terms)]
        self._named = named[0] if len(named) == 1 else None
        self._is_dialogue = any(one.role is MessageRole.ASSISTANT for one in passages)
        answering = [at for at, one in enumerate(passages) if any(one.chunks) and allowed(one, query.filters)]
        self._most_heard = max(map(self._evidence, answering), default=0.0)
        self._late_tokens = (
            query_tokens(query.text, embedder, analyser.terms, self._words.idf, set().union(*names.values()))
            if query.weights.vector > 0 and any(TABLE[passages[at].profile].late for at in answering)
            else []
        )

    def parts(self, at: int) -> dict[str, float]:
        """The terms of the sum. `vector` = 0.7 leaves the measured weights of both arms as they are."""
        passage, weights = self._passages[at], self._query.weights
        constants = TABLE[passage.profile]
        trust = min(1.0, self._most_heard / constants.doubt_below) if constants.doubt_below else 1.0
        vector = self._unframed if passage.profile is Profile.CHAT else self.vector
        age_days = max((self._now - passage.occurred_at).total_seconds(), 0.0) / 86_400
        lexical, dense, late = 1.0, constants.dense, 0.0
        if self._late_tokens and constants.late:
            lexical, dense = constants.late_lexical, constants.late_dense
            matched = late_interaction(self._passages, at, self._late_tokens)
            late = constants.late * (matched - constants.late_unrelated)
        return {
            "lexical": (1 - weights.vector) / (1 - 0.7) * trust * lexical * self._evidence(at),
            "dense": weights.vector / 0.7 * dense * cosine(passage.vector - self._mean, vector - self._mean),
            "late": weights.vector / 0.7 * late,
            **self._cues(passage),
            "recency": weights.recency * math.pow(0.5, age_days / weights.recency_half_life_days),
            "confidence": weights.confidence * math.pow(0.5, age_days / CONFIDENCE_HALF_LIFE_DAYS),
        }

    def by_words(self, at: int) -> bool:
        """In a hybrid search, a passage with a word of the query, or next to one, is found whatever its cosine."""
        return self._query.hybrid and self._evidence(at) > 0

    def _evidence(self, at: int) -> float:
        is_talk = self._passages[at].profile is Profile.TALK
        return self._words.evidence(at, self._terms_of_talk if is_talk else self._terms)

    def _cues(self, passage: SlowPassage) -> dict[str, float]:
        constants, text, question = TABLE[passage.profile], passage.text, self._query.text
        return {
            "speaker": constants.speaker * (passage.speaker is not None and passage.speaker == self._named),
            "role": self._role(constants) * (self._is_dialogue and passage.role is MessageRole.USER),
            "question": constants.question * cues.ends_in_question(text),
            "length": constants.length * math.log(1 + sum(map(len, passage.chunks))),
            "time_word": constants.time_word * (cues.asks_when(question) and cues.has_time_word(text)),
            "number": constants.number * (cues.asks_how_many(question) and cues.has_number(text)),
            "name": constants.name * (cues.asks_for_a_name(question) and cues.has_name(text)),
            "period": constants.period * times.within(self._intent.periods, passage.occurred_at.date()),
            "day": constants.day * times.near_to(self._intent.near, passage.occurred_at.date()),
        }

    def _role(self, constants: Constants) -> float:
        """The caller's weight, or the measured one unless the question is about what the assistant said."""
        if not constants.role or self._query.weights.role is None:
            return 0.0 if asks_the_assistant(self._query.text) else constants.role
        return self._query.weights.role


def cosine(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / lengths if lengths else 0.0


def allowed(passage: SlowPassage, filters: Filters) -> bool:
    return (
        (filters.include_archived or not passage.archived)
        and (not filters.sources or any(selects(wanted, passage.source) for wanted in filters.sources))
        and (filters.since is None or passage.occurred_at >= filters.since)
        and (filters.until is None or passage.occurred_at <= filters.until)
        and holds(passage.metadata, filters.metadata)
        and tags.allowed(passage.tags, filters)
        and passage.owner_id not in filters.without
        and (filters.turn is None or of_turn(passage, filters.turn))
    )


def of_turn(passage: SlowPassage, wanted: TurnFilter) -> bool:
    return (
        (wanted.session_id is None or passage.session_row == wanted.session_id)
        and (wanted.not_session_id is None or passage.session_row != wanted.not_session_id)
        and (wanted.user_id is None or passage.user_row == wanted.user_id)
        and (wanted.role is None or passage.role is wanted.role)
    )


def selects(wanted: SourceFilter, source: str) -> bool:
    if wanted.match is SourceMatch.SUBSTRING:
        return wanted.pattern in source
    if wanted.match is SourceMatch.PATH:
        return source == wanted.pattern or source.startswith(f"{wanted.pattern}/")
    return source.startswith(wanted.pattern)


def holds(metadata: Mapping[str, object], wanted: Mapping[str, object]) -> bool:
    """Every wanted key has an equal JSON value: 1, 1.0 and true are three values."""
    return all(key in metadata and json.dumps(metadata[key]) == json.dumps(value) for key, value in wanted.items())
