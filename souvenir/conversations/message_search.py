"""A search of an agent's messages, now or as of an earlier time.

A search of an earlier time finds what a search found then: messages that were not edited since are found by the current
index, and those that share words with an edited one by an index that is made for this search. At most
`MAX_FORMER_TEXTS` former texts are embedded, first those that the filters include; the result says if there are more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from souvenir.core.passages import FormerText, PastPassages
from souvenir.core.types import (
    EvidenceLevel,
    Filters,
    MessageRole,
    PassageKind,
    Scope,
    ScoreParts,
    SearchQuery,
    TimeUse,
    TurnFilter,
    Weights,
)
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.history import MAX_FORMER_TEXTS, former_passages
from souvenir.retrieval.recall import VECTOR
from souvenir.retrieval.relevance import NOTHING_FOUND, Found
from souvenir.store.messages import messages as rows
from souvenir.store.messages import sessions
from souvenir.store.messages.agents import require_agent
from souvenir.store.messages.messages import Message, MessageFilter
from souvenir.store.privacy import flagged
from souvenir.store.sql import Connection


@dataclass(frozen=True, slots=True)
class MessageQuery:
    """A search of messages; every filter applies before the best `limit` are chosen.

    :param without_topics: Exclude messages that are flagged with one of these sensitive topics.
    :param auto_intent: Parse times in the text, relative to `now` or the clock.
    :param min_score: As in `SearchQuery`. :param role_weight: `Weights.role`.
    :param explain: Return the contribution of each term for each hit.
    :param hybrid: As in `SearchQuery`; likewise `words_only`. :param among: Ids of the searched messages; None for all.
    """

    text: str
    limit: int = 5
    session_id: str | None = None
    user: str | None = None
    role: MessageRole | None = None
    since: datetime | None = None
    until: datetime | None = None
    exclude_session_id: str | None = None
    without_topics: tuple[str, ...] = ()
    auto_intent: bool = True
    now: datetime | None = None
    min_score: float | None = None
    role_weight: float | None = None
    explain: bool = False
    hybrid: bool = True
    words_only: bool = False
    among: tuple[int, ...] | None = None

    @property
    def filter(self) -> MessageFilter:
        return MessageFilter(self.session_id, self.user, self.role, self.since, self.until, self.exclude_session_id)


@dataclass(frozen=True, slots=True)
class MessageHit:
    """`score` is how likely it answers, in [0, 1]; `similarity` is the cosine, or None without a query vector."""

    message: Message
    score: float
    similarity: float | None
    parts: ScoreParts


@dataclass(frozen=True, slots=True)
class MessageSearch:
    """`degraded` names the arms that could not run, and `rerank`; empty if all did.

    :param relevance: As in `SearchResult`.
    """

    hits: tuple[MessageHit, ...]
    degraded: tuple[str, ...] = ()
    relevance: float = 0.0
    evidence: EvidenceLevel = EvidenceLevel.NONE
    signals: Mapping[str, float] = field(default_factory=dict)
    candidates_considered: int = 0
    repairs: Mapping[str, str] = field(default_factory=dict)
    unheard: float = 0.0
    time: TimeUse | None = None


@dataclass(frozen=True, slots=True)
class _Then:
    """The messages of an earlier time.

    :param unchanged: Ids of messages in sessions without edits since then.
    :param related: Ids of unedited messages in the other sessions, which share words with the edited ones.
    :param former: Those that were edited since, as they were; `left_out` is true if there are more.
    """

    at: datetime
    unchanged: Sequence[int]
    related: Sequence[int]
    former: Sequence[Message]
    left_out: bool

    def passages(self, engine: MemoryEngine) -> tuple[PastPassages, tuple[str, ...]]:
        """Return the passages of then, of which the former ones are embedded for this search, and the degradations."""
        texts, spoken_by = [one.content for one in self.former], [one.spoken_by for one in self.former]
        embedded, degraded = former_passages(lambda: engine.prepare(texts, spoken_by=spoken_by), left_out=self.left_out)
        former = [FormerText(one.owner, of) for one, of in zip(self.former, embedded, strict=False)]
        return PastPassages(self.at, self.unchanged, former, self.related), degraded


def _then(connection: Connection, namespace_id: int, query: MessageQuery, as_of: datetime) -> _Then:
    stood = rows.stored_then(connection, namespace_id, as_of)
    edited = [one.id for one in stood if not one.same]
    touched = {one.session_row for one in stood if not one.same}
    unchanged = [one.id for one in stood if one.session_row not in touched]
    related = [one.id for one in stood if one.same and one.session_row in touched]
    read = edited
    if len(edited) > MAX_FORMER_TEXTS:
        # What the filters exclude is not found, and only counts in the statistics.
        found = rows.matching(connection, namespace_id, query.filter, edited)
        read = sorted(edited, key=lambda id_: (id_ in found, id_))[-MAX_FORMER_TEXTS:]
    former = rows.by_id(connection, namespace_id, read, as_of)
    return _Then(as_of, unchanged, related, list(former.values()), len(read) < len(edited))


def search_messages(
    engine: MemoryEngine, scope: Scope, query: MessageQuery, as_of: datetime | None = None
) -> MessageSearch:
    """Return the messages that answer a query best, by both retrieval arms, among all indexed ones.

    :param as_of: As it would have been answered then; None for now.
    :raises SearchUnavailable: If no arm can run.
    """
    with engine.namespace(scope) as (connection, _):
        agent = require_agent(connection, scope)
        filters = _filters(connection, agent.namespace_id, query)
        then = None if as_of is None else _then(connection, agent.namespace_id, query, as_of)
    if filters is None:
        return MessageSearch(())
    asked = replace(_asked(query, filters), now=query.now or as_of)
    past, degraded = (None, ()) if then is None else then.passages(engine)
    found = engine.recall(scope, PassageKind.MESSAGE, asked, owner_ids=query.among, past_passages=past)
    if found is None:
        return MessageSearch(())
    with engine.namespace(scope) as (connection, _):
        stored = rows.by_id(connection, agent.namespace_id, found.owner_ids, as_of)
    return _result(replace(found, degraded=(*found.degraded, *degraded)), stored)


def _filters(connection: Connection, namespace_id: int, query: MessageQuery) -> Filters | None:
    """Return the filters of the index; None if the query names a session or a user that does not exist."""
    session = excluded = user = None
    if query.session_id is not None:
        session = sessions.row_of(connection, namespace_id, query.session_id)
    if query.exclude_session_id is not None:
        excluded = sessions.row_of(connection, namespace_id, query.exclude_session_id)
    if query.user is not None:
        user = sessions.user_row(connection, namespace_id, query.user)
    if (query.session_id is not None and session is None) or (query.user is not None and user is None):
        return None
    without = flagged(connection, PassageKind.MESSAGE, namespace_id, query.without_topics)
    turn = TurnFilter(session_id=session, not_session_id=excluded, user_id=user, role=query.role)
    return Filters(since=query.since, until=query.until, turn=turn, without=tuple(without))


def _asked(query: MessageQuery, filters: Filters) -> SearchQuery:
    return SearchQuery(
        query.text,
        query.limit,
        filters=filters,
        weights=Weights(role=query.role_weight),
        min_score=query.min_score,
        now=query.now,
        explain=query.explain,
        auto_intent=query.auto_intent,
        hybrid=query.hybrid,
        words_only=query.words_only,
    )


def _result(found: Found, stored: Mapping[int, Message]) -> MessageSearch:
    """Convert the result; messages deleted since they were ranked are omitted."""
    embedded = VECTOR not in found.degraded and not found.query.words_only
    parts = {ranked.owner_id: found.score_parts(ranked) for ranked in found.ranked}
    hits = tuple(
        MessageHit(
            stored[ranked.owner_id],
            ranked.probability,
            parts[ranked.owner_id].similarity if embedded else None,
            parts[ranked.owner_id],
        )
        for ranked in found.ranked
        if ranked.owner_id in stored
    )
    judgement = found.judgement if hits else NOTHING_FOUND
    return MessageSearch(
        hits,
        degraded=found.degraded,
        relevance=judgement.relevance,
        evidence=judgement.evidence,
        signals=judgement.signals,
        candidates_considered=len(found.candidates.rows),
        repairs=found.candidates.repairs,
        unheard=found.unheard,
        time=found.time,
    )
