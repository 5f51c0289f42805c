"""The three tiers of any agent together, and what a prompt takes of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory_engine import MemoryEngine
from souvenir.conversation.agents import Agents
from souvenir.conversation.keyed_memories import PREFERENCE, KeyedMemories
from souvenir.conversation.messages import Conversations, MessageQuery, MessageSearch
from souvenir.conversation.sessions import Sessions
from souvenir.conversation.window import MAX_MESSAGES, WindowMessage
from souvenir.conversation.windows import Windows
from souvenir.types import Scope

HISTORY_LIMIT = 5
MEMORY_LIMIT = 5


@dataclass(frozen=True, slots=True)
class TierContext:
    """What a prompt takes.

    :param memories: Texts `key: value`, best first; preferences are not among them, since all of those stand beside.
    :param degraded: What of the searches could not run.
    """

    session: Sequence[WindowMessage]
    history: MessageSearch
    memories: Sequence[str]
    preferences: Mapping[str, str]
    degraded: Sequence[str]


class Tiers:
    """The verbs of each tier, and of all of them. Safe to use from any thread."""

    def __init__(
        self,
        engine: MemoryEngine,
        *,
        conversations: Conversations | None = None,
        max_messages: int = MAX_MESSAGES,
    ) -> None:
        """:param max_messages: In the context of each running conversation."""
        self._engine = engine
        self.agents = Agents(engine)
        self.conversations = conversations or Conversations(engine)
        self.sessions = Sessions(engine)
        self.windows = Windows(engine, self.conversations, max_messages=max_messages)
        self.long_term = KeyedMemories(engine)

    def history(
        self,
        scope: Scope,
        query: str,
        *,
        but: str | None = None,
        limit: int = HISTORY_LIMIT,
        without_topics: tuple[str, ...] = (),
    ) -> MessageSearch:
        """What was said before that answers a query best.

        :param but: The running session: it is no past yet.
        :param without_topics: Messages that are flagged with one of these sensitive topics are not found.
        """
        if limit < 1:
            return MessageSearch(())
        asked = MessageQuery(query, limit, exclude_session_id=but, without_topics=without_topics)
        return self.conversations.search(scope, asked)

    def context(self, scope: Scope, query: str, *, session_id: str | None) -> TierContext:
        """What a prompt takes for a query in a conversation, without what the agent's policy hides.

        :param session_id: The running one, if there is one.
        :raises SessionNotFound: If there is no such session.
        """
        said = () if session_id is None else self.windows.newest(scope, session_id)
        hidden = self._engine.screening.policy(scope).hidden_topics
        past = self.history(scope, query, but=session_id, without_topics=hidden)
        others = [category for category in self.long_term.categories if category != PREFERENCE]
        known = self.long_term.search(scope, query, categories=others, limit=MEMORY_LIMIT, without_topics=hidden)
        return TierContext(
            session=said,
            history=past,
            memories=[hit.text for hit in known.hits],
            preferences=self.long_term.preference_values(scope, without_topics=hidden),
            degraded=tuple(dict.fromkeys((*past.degraded, *known.degraded))),
        )
