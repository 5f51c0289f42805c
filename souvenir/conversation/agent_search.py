"""One search of all that an agent has: what was said and what is remembered, in one ranking.

Each kind is searched as it is by itself (`Conversations.search`, `MemoryEngine.search`); only their order is new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memory_engine import MemoryEngine
from souvenir.conversation.agents import known
from souvenir.conversation.messages import Conversations, MessageHit, MessageQuery, MessageSearch
from souvenir.search.one_ranking import in_turns
from souvenir.search.relevance import evidence_of
from souvenir.types import EvidenceLevel, Filters, Hit, MessageRole, RecordKind, Scope, SearchQuery, SearchResult


@dataclass(frozen=True, slots=True)
class AgentQuery:
    """A search of several kinds; every filter applies before the best `limit` are chosen.

    :param kinds: Which to search. :param since: Of what was said or happened then, like `until`.
    :param session_id: Narrows messages only, as do `exclude_session_id`, `user` and `role`: memories have none.
    :param auto_intent: Read times in the text, relative to `now` or the clock.
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
        )

    def of_memories(self) -> SearchQuery:
        filters = Filters(since=self.since, until=self.until)
        return SearchQuery(self.text, self.limit, filters=filters, auto_intent=self.auto_intent, now=self.now)


@dataclass(frozen=True, slots=True)
class AgentFinds:
    """`degraded` names what of either search could not run; empty means that nothing was left out.

    :param hits: Best first. A score is comparable within a kind; between kinds, the order says more.
    :param relevance: How likely it is that they answer the question: the better of the two kinds'.
    """

    hits: Sequence[MessageHit | Hit]
    relevance: float
    evidence: EvidenceLevel
    degraded: tuple[str, ...] = ()


class AgentSearch:
    """The scope's namespace is the agent. Safe to use from any thread."""

    def __init__(self, engine: MemoryEngine, conversations: Conversations) -> None:
        self._engine = engine
        self._conversations = conversations

    def search(self, scope: Scope, query: AgentQuery) -> AgentFinds:
        """What answers a query best of all that the agent has.

        :raises AgentNotFound: If the namespace is no agent.
        :raises SearchUnavailable: If no arm can run.
        """
        with self._engine.namespace(scope) as (connection, _):
            known(connection, scope)
        messages, memories = MessageSearch(()), SearchResult(query.text, ())
        if RecordKind.MESSAGE in query.kinds:
            messages = self._conversations.search(scope, query.of_messages())
        if RecordKind.MEMORY in query.kinds:
            memories = self._engine.search(scope, query.of_memories())
        return merged(messages, memories, query.limit)


def merged(messages: MessageSearch, memories: SearchResult, limit: int | None = None) -> AgentFinds:
    """What two searches found, in one ranking.

    :param limit: How many of them; None: all.
    """
    found: tuple[Sequence[MessageHit | Hit], Sequence[MessageHit | Hit]] = messages.hits, memories.hits
    # Where one of them lacks an arm, or a cross-encoder ranked only the other, their scores have different scales.
    comparable = set(messages.degraded) == set(memories.degraded)
    order = in_turns([[hit.score for hit in hits] for hits in found], comparable=comparable)
    hits = [found[kind][place] for kind, place in order[:limit]]
    relevance = max(messages.relevance, memories.relevance)
    degraded = tuple(dict.fromkeys((*messages.degraded, *memories.degraded)))
    return AgentFinds(hits, relevance, evidence_of(relevance), degraded)
