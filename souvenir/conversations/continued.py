"""What messages continue, so that they are not stored for an agent or a session that was deleted since."""

from __future__ import annotations

from dataclasses import dataclass

from souvenir.core.errors import AgentNotFound, SessionNotFound
from souvenir.core.types import Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.messages import sessions
from souvenir.store.messages.agents import Agent, find
from souvenir.store.messages.messages import Message
from souvenir.store.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Continued:
    """The agent's UUID and the session's row id; None for one that did not exist."""

    agent_uid: str | None = None
    session_row: int | None = None

    @classmethod
    def now(cls, engine: MemoryEngine, scope: Scope, session_id: str) -> Continued:
        with engine.namespace(scope) as (connection, namespace):
            agent = None if namespace is None else find(connection, scope.namespace)
            if agent is None:
                return cls()
            session = sessions.find(connection, agent.namespace_id, session_id)
            return cls(agent.uid, None if session is None else session.id)

    @classmethod
    def by(cls, message: Message) -> Continued:
        return cls(message.agent_uid, message.session_row)

    def require(self, tx: Transaction, agent: Agent, session_id: str) -> None:
        """:param agent: The present one. :raises AgentNotFound: If it is another one.

        :raises SessionNotFound: If the session was deleted since.
        """
        if self.agent_uid not in (None, agent.uid):
            raise AgentNotFound(agent.name)
        if self.session_row is not None:
            session = sessions.find(tx.connection, agent.namespace_id, session_id)
            if session is None or session.id != self.session_row:
                raise SessionNotFound(session_id)


NOTHING_YET = Continued()
"""Any agent and session, which are created if they do not exist."""
