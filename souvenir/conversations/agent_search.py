"""Search of an agent's messages and memories in one ranking.

By evidence, each kind is searched separately (`Conversations.search`, `MemoryEngine.search`), with both retrieval arms
or one of them, and the results are merged by how likely they answer. By concept, everything that mentions the concepts
named in the question is found; by time, everything of the named period. Every filter applies before the best are
chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from souvenir.conversations.message_search import MessageHit, MessageQuery, MessageSearch
from souvenir.conversations.messages import Conversations
from souvenir.core.errors import InvalidRequest
from souvenir.core.timestamps import utc_now
from souvenir.core.types import (
    UNRANKED,
    EvidenceLevel,
    Filters,
    Hit,
    Memory,
    MessageRole,
    PassageKind,
    RecordKind,
    Scope,
    SearchQuery,
    SearchResult,
    SearchStrategy,
)
from souvenir.knowledge.concepts import NamedConcepts, named_in
from souvenir.memories.engine import MemoryEngine
from souvenir.retrieval.probability import DECIMALS
from souvenir.retrieval.recall import LEXICAL, VECTOR
from souvenir.retrieval.relevance import evidence_of
from souvenir.retrieval.time_intent import named_time, time_intent
from souvenir.store.graph import mentions
from souvenir.store.memories import reads
from souvenir.store.messages import messages
from souvenir.store.messages.agents import require_agent
from souvenir.store.messages.messages import Message, MessageFilter

CONCEPT_CANDIDATES = 256
"""Maximum number of candidates of each kind that mention the named concepts: most mentions first, then the latest."""

HALF_LIFE_S = 30 * 86_400.0
"""Half-life of the score if results are ranked by time only."""

AnyHit = MessageHit | Hit


@dataclass(frozen=True, slots=True)
class AgentQuery:
    """A search of several kinds; every filter applies before the best `limit` are chosen.

    :param kinds: The kinds to search. :param since: Limits the time of the message or event, like `until`.
    :param session_id: Limits messages only, as do `exclude_session_id`, `user` and `role`: memories have none of these.
    :param auto_intent: Parse times in the text, relative to `now` or the clock; a search by time always does.
    :param min_score: Minimum score of a hit.
    """

    text: str
    limit: int = 5
    kinds: frozenset[RecordKind] = frozenset(RecordKind)
    since: datetime | None = None
    until: datetime | None = None
    session_id: str | None = None
    exclude_session_id: str | None = None
    user: str | None = None
    role: MessageRole | None = None
    auto_intent: bool = True
    now: datetime | None = None
    strategy: SearchStrategy = SearchStrategy.AUTO
    min_score: float | None = None

    def of_messages(self) -> MessageQuery:
        return MessageQuery(
            self.text,
            self.limit,
            session_id=self.session_id,
            user=self.user,
            role=self.role,
            since=self.since,
            until=self.until,
            exclude_session_id=self.exclude_session_id,
            auto_intent=self.auto_intent,
            now=self.now,
            min_score=self.min_score,
            hybrid=self.strategy is not SearchStrategy.SEMANTIC,
            words_only=self.strategy is SearchStrategy.KEYWORD,
        )

    def of_memories(self) -> SearchQuery:
        return SearchQuery(
            self.text,
            self.limit,
            filters=Filters(since=self.since, until=self.until),
            min_score=self.min_score,
            auto_intent=self.auto_intent,
            now=self.now,
            hybrid=self.strategy is not SearchStrategy.SEMANTIC,
            words_only=self.strategy is SearchStrategy.KEYWORD,
        )

    def message_filter(self) -> MessageFilter:
        return MessageFilter(
            session_id=self.session_id,
            exclude_session_id=self.exclude_session_id,
            user=self.user,
            role=self.role,
            since=self.since,
            until=self.until,
        )


@dataclass(frozen=True, slots=True)
class AgentSearchResult:
    """`degraded` names the arms of either search that could not run; empty if all did.

    :param hits: Best first. The score is how likely a hit answers, except by concept: the mean rarity of the named
        concepts that it mentions, as far as that is at most 1; and by time alone: recency.
    :param relevance: As in `SearchResult`: the higher one of the two kinds.
    :param by: The strategies that were used, without those that could not run.
    :param named: The concepts that the question names. :param mentioned: The named concepts that each hit mentions.
    """

    hits: Sequence[AnyHit]
    relevance: float
    evidence: EvidenceLevel
    degraded: tuple[str, ...] = ()
    by: tuple[SearchStrategy, ...] = ()
    named: tuple[str, ...] = ()
    mentioned: Sequence[tuple[str, ...]] = ()

    @property
    def with_concepts(self) -> Iterator[tuple[AnyHit, tuple[str, ...]]]:
        """Pairs of each hit and the named concepts that it mentions."""
        return zip(self.hits, self.mentioned, strict=True)

    @property
    def embedded(self) -> bool:
        """True if the question was embedded; otherwise there are no cosines."""
        return SearchStrategy.SEMANTIC in self.by


class AgentSearch:
    """Thread-safe. The scope's namespace is the agent."""

    def __init__(self, engine: MemoryEngine, conversations: Conversations) -> None:
        self._engine = engine
        self._conversations = conversations

    def search(self, scope: Scope, query: AgentQuery) -> AgentSearchResult:
        """Return the best answers to a query among the messages and memories of the agent.

        :raises AgentNotFound: If the namespace is no agent.
        :raises SearchUnavailable: If no arm can run.
        :raises InvalidRequest: If the strategy is time, and the query contains no time.
        """
        with self._engine.namespace(scope) as (connection, _):
            agent = require_agent(connection, scope)
            named = named_in(connection, agent.namespace_id, query.text)
        if query.strategy is SearchStrategy.CONCEPT:
            found = _at_least(query.min_score, self._by_concept(scope, _in_time(replace(query, min_score=None)), named))
        elif query.strategy is SearchStrategy.TIME:
            found = self._by_time(scope, query)
        else:
            found = self._by_evidence(scope, query)
        return replace(found, named=tuple(named.names.values()), mentioned=self._mentioned(scope, found.hits, named))

    def _by_evidence(self, scope: Scope, query: AgentQuery) -> AgentSearchResult:
        said, remembered = MessageSearch(()), SearchResult(query.text, ())
        if RecordKind.MESSAGE in query.kinds:
            said = self._conversations.search(scope, query.of_messages())
        if RecordKind.MEMORY in query.kinds:
            remembered = self._engine.search(scope, query.of_memories())
        found = merged(said, remembered, query.limit)
        timed = said.time is not None or remembered.time is not None
        return replace(found, by=_by(query.strategy, found.degraded, timed=timed))

    # --- by concept --------------------------------------------------------------------------------------------

    def _by_concept(self, scope: Scope, query: AgentQuery, named: NamedConcepts) -> AgentSearchResult:
        """Rank by the mentioned concepts, ties by evidence."""
        weights: dict[RecordKind, Mapping[int, float]] = {kind: {} for kind in RecordKind}
        count = max(CONCEPT_CANDIDATES, query.limit)
        with self._engine.namespace(scope) as (connection, namespace):
            if named.spellings and namespace is not None and RecordKind.MESSAGE in query.kinds:
                weights[RecordKind.MESSAGE] = mentions.messages_mentioning(
                    connection, namespace.id, named.spellings, query.message_filter(), limit=count
                )
            if named.spellings and namespace is not None and RecordKind.MEMORY in query.kinds:
                weights[RecordKind.MEMORY] = mentions.memories_mentioning(
                    connection, namespace, named.spellings, since=query.since, until=query.until, limit=count
                )
        found = merged(*self._ranked(scope, query, weights))
        hits = [*found.hits, *self._others(scope, weights, found.hits)]
        order = sorted(hits, key=lambda hit: -weights[_kind(hit)][_id(hit)])[: query.limit]
        by = (SearchStrategy.CONCEPT, *_by(SearchStrategy.AUTO, found.degraded, timed=False))
        shares = [round(min(1.0, weights[_kind(hit)][_id(hit)] / len(named.names)), DECIMALS) for hit in order]
        hits = [replace(hit, score=share) for hit, share in zip(order, shares, strict=True)]
        return replace(found, hits=hits, by=by)

    def _ranked(
        self, scope: Scope, query: AgentQuery, chosen: Mapping[RecordKind, Mapping[int, float]]
    ) -> tuple[MessageSearch, SearchResult]:
        """Rank the chosen messages and memories by evidence."""
        said, remembered = MessageSearch(()), SearchResult(query.text, ())
        if ids := tuple(chosen[RecordKind.MESSAGE]):
            said = self._conversations.search(scope, replace(query.of_messages(), limit=len(ids), among=ids))
        if ids := tuple(chosen[RecordKind.MEMORY]):
            asked = replace(query.of_memories(), top_k=len(ids))
            found = self._engine.recall(scope, PassageKind.MEMORY, asked, owner_ids=ids)
            with self._engine.namespace(scope) as (connection, namespace):
                if found is not None and namespace is not None:
                    remembered = found.result(reads.memories(connection, namespace, found.owner_ids))
        return said, remembered

    def _others(
        self, scope: Scope, chosen: Mapping[RecordKind, Mapping[int, float]], found: Sequence[AnyHit]
    ) -> Sequence[AnyHit]:
        """Return the chosen ones without evidence, for instance because an arm could not run, the latest first."""
        ids = {kind: chosen[kind].keys() - {_id(hit) for hit in found if _kind(hit) is kind} for kind in RecordKind}
        with self._engine.namespace(scope) as (connection, namespace):
            if namespace is None or not any(ids.values()):
                return ()
            said = messages.by_id(connection, namespace.id, ids[RecordKind.MESSAGE])
            remembered = reads.memories(connection, namespace, ids[RecordKind.MEMORY])
        return _latest_first(said.values(), remembered.values(), utc_now())

    # --- by time -----------------------------------------------------------------------------------------------

    def _by_time(self, scope: Scope, query: AgentQuery) -> AgentSearchResult:
        """Rank by evidence if the question contains more than a time; otherwise the latest first."""
        now = query.now or utc_now()
        time, given = named_time(query.text, now), (query.since, query.until) != (None, None)
        if time is None and not given:
            raise InvalidRequest("Name a time in the query, such as 'last week', or give since or until")
        if time is not None and not given:
            query = replace(query, since=time.span.since, until=time.span.until)
        words = query.text if time is None else time.words
        if words is None:
            return self._latest(scope, query, now)
        found = self._by_evidence(
            scope, replace(query, text=words, strategy=SearchStrategy.AUTO, auto_intent=False, now=now)
        )
        return replace(found, by=(SearchStrategy.TIME, *found.by))

    def _latest(self, scope: Scope, query: AgentQuery, now: datetime) -> AgentSearchResult:
        said: Sequence[Message] = ()
        remembered: Sequence[Memory] = ()
        with self._engine.namespace(scope) as (connection, namespace):
            if namespace is not None and RecordKind.MESSAGE in query.kinds:
                said = messages.newest(connection, namespace.id, query.message_filter(), limit=query.limit)
            if namespace is not None and RecordKind.MEMORY in query.kinds:
                remembered = reads.newest_memories(
                    connection, namespace, since=query.since, until=query.until, limit=query.limit
                )
        hits = _latest_first(said, remembered, now)[: query.limit]
        found = AgentSearchResult(hits, 1.0, EvidenceLevel.STRONG, by=(SearchStrategy.TIME,))
        return _at_least(query.min_score or 0.0, found)

    # --- what is mentioned -------------------------------------------------------------------------------------

    def _mentioned(self, scope: Scope, hits: Sequence[AnyHit], named: NamedConcepts) -> Sequence[tuple[str, ...]]:
        """Return the named concepts that each hit mentions, in the order of the question."""
        if not named.names:
            return [()] * len(hits)
        root_of = {one.concept_id: one.root_id for one in named.spellings}
        with self._engine.namespace(scope) as (connection, _):
            found = {
                kind: mentions.mentioned_by(
                    connection, kind, [_id(hit) for hit in hits if _kind(hit) is kind], list(root_of)
                )
                for kind in RecordKind
            }
        of_hits = [{root_of[id_] for id_ in found[_kind(hit)].get(_id(hit), ())} for hit in hits]
        return [tuple(name for root, name in named.names.items() if root in roots) for roots in of_hits]


def merged(said: MessageSearch, remembered: SearchResult, limit: int | None = None) -> AgentSearchResult:
    """Merge the results of two searches into one ranking.

    :param limit: Maximum number of hits; None for all.
    """
    found: list[AnyHit] = [*said.hits, *remembered.hits]
    hits = sorted(found, key=lambda hit: -hit.score)[:limit]
    relevance = max(said.relevance, remembered.relevance)
    degraded = tuple(dict.fromkeys((*said.degraded, *remembered.degraded)))
    return AgentSearchResult(hits, relevance, evidence_of(relevance), degraded)


def _at_least(min_score: float | None, found: AgentSearchResult) -> AgentSearchResult:
    hits = found.hits if min_score is None else [hit for hit in found.hits if hit.score >= min_score]
    return replace(found, hits=hits) if hits else replace(found, hits=[], relevance=0.0, evidence=EvidenceLevel.NONE)


def _by(strategy: SearchStrategy, degraded: Sequence[str], *, timed: bool) -> tuple[SearchStrategy, ...]:
    arms = {SearchStrategy.SEMANTIC: VECTOR, SearchStrategy.KEYWORD: LEXICAL}
    ran = [one for one, arm in arms.items() if strategy in (one, SearchStrategy.AUTO) and arm not in degraded]
    return (*ran, SearchStrategy.TIME) if timed else tuple(ran)


def _in_time(query: AgentQuery) -> AgentQuery:
    """Add the period in the question to the filters, so that it applies to concept mentions too."""
    if not query.auto_intent:
        return query
    intent = time_intent(query.text, query.now or utc_now())
    filtered = None if intent is None else intent.applied_to(query.of_memories())[1].filtered
    return query if filtered is None else replace(query, since=filtered.since, until=filtered.until)


def _latest_first(said: Iterable[Message], remembered: Iterable[Memory], now: datetime) -> Sequence[AnyHit]:
    """Return hits scored by recency, for lack of other evidence."""
    dated: list[tuple[datetime, AnyHit]] = [
        *((one.created_at, MessageHit(one, _recency(one.created_at, now), None, UNRANKED)) for one in said),
        *((one.occurred_at, Hit(one, _recency(one.occurred_at, now), UNRANKED)) for one in remembered),
    ]
    return [hit for _, hit in sorted(dated, key=lambda one: one[0], reverse=True)]


def _recency(at: datetime, now: datetime) -> float:
    age_s = max((now - at).total_seconds(), 0.0)
    return round(math.pow(0.5, age_s / HALF_LIFE_S), DECIMALS)


def _kind(hit: AnyHit) -> RecordKind:
    return RecordKind.MESSAGE if isinstance(hit, MessageHit) else RecordKind.MEMORY


def _id(hit: AnyHit) -> int:
    return hit.message.id if isinstance(hit, MessageHit) else hit.memory.id
