"""Agents. One is a namespace with a name for clients; whatever writes to an agent that is not there makes it."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from souvenir.core.errors import AgentNotFound, InvalidRequest
from souvenir.core.types import AccessLevels, Filters, HistoryEntry, JsonObject, Memory, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.privacy.policy import PrivacyPolicy
from souvenir.store.idempotency import Once, do_once
from souvenir.store.messages import agents, blocks, messages, sessions
from souvenir.store.messages import agents as rows
from souvenir.store.messages.agents import Agent, AgentCounts, require_agent
from souvenir.store.messages.blocks import Block
from souvenir.store.messages.messages import Message
from souvenir.store.messages.sessions import Session, User
from souvenir.store.transaction import Transaction
from souvenir.transfer.export import memory_lines


@dataclass(frozen=True, slots=True)
class AgentStats:
    """`index_bytes` is what the loaded indexes of the agent take in memory."""

    counts: AgentCounts
    index_bytes: int


class Agents:
    """The agents of one engine; the scope's namespace is the agent."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    def create(self, scope: Scope, metadata: JsonObject | None = None, *, once: Once | None = None) -> Agent:
        """The scope's agent, made if it is new; metadata of one that has some stays."""
        if metadata is not None:
            metadata = self._engine.screening.metadata(scope, metadata)

        def work(tx: Transaction) -> Agent:
            return do_once(
                tx,
                once,
                lambda: ensured(tx, metadata),
                ids=lambda agent: [agent.uid],
                again=lambda _: rows.require_agent(tx.connection, scope),
            )

        return self._engine.write(scope, work)

    def set_policy(self, scope: Scope, changes: JsonObject) -> None:
        """Set the agent's privacy policy: that of the rules with these changes.

        :raises AgentNotFound: If the namespace is no agent.
        :raises InvalidRequest: If the rules know no such topic.
        """
        topics = self._engine.screening.rules.topic_names
        for name in PrivacyPolicy.of_json(changes).hidden_topics:
            if name not in topics:
                raise InvalidRequest(f"The rules know no topic {name!r}; they know {', '.join(topics)}")

        def work(tx: Transaction) -> None:
            rows.set_policy(tx.connection, rows.require_agent(tx.connection, scope).namespace_id, changes)

        self.get(scope)
        self._engine.write(scope, work)

    def access(self, scope: Scope) -> AccessLevels:
        """The access levels of the namespace; one that is no agent has no limits."""
        with self._engine.namespace(scope) as (connection, _):
            return rows.access(connection, scope.namespace)

    def set_access(self, scope: Scope, changes: Mapping[str, bool]) -> AccessLevels:
        """Give or take some of the agent's levels, by their names; the others stay.

        :raises AgentNotFound: If the namespace is no agent.
        """

        def work(tx: Transaction) -> AccessLevels:
            agent = rows.require_agent(tx.connection, scope)
            levels = replace(agent.access, **changes)
            rows.set_access(tx.connection, agent.namespace_id, levels)
            return levels

        self.get(scope)
        return self._engine.write(scope, work)

    def get(self, scope: Scope) -> Agent:
        """:raises AgentNotFound: If the namespace is no agent."""
        with self._engine.namespace(scope) as (connection, _):
            return rows.require_agent(connection, scope)

    def stats(self, scope: Scope) -> AgentStats:
        """:raises AgentNotFound: If the namespace is no agent."""
        with self._engine.namespace(scope) as (connection, _):
            agent = rows.require_agent(connection, scope)
            counts = rows.counts(connection, agent.namespace_id)
        loaded = self._engine.models.serving.registry.loaded()
        of_agent = [index for key, index in loaded.items() if key.namespace_id == agent.namespace_id]
        return AgentStats(counts, sum(index.nbytes for index in of_agent))

    def page(self, *, only: str | None, offset: int, limit: int) -> tuple[Sequence[Agent], int]:
        """In the order of their names, and how many there are.

        :param only: The one name that may be seen, if not all may.
        """
        with self._engine.namespace(Scope()) as (connection, _):
            return rows.page(connection, only=only, offset=offset, limit=limit)


def ensured(tx: Transaction, metadata: JsonObject | None = None) -> Agent:
    """The transaction's namespace as an agent, which it becomes if it is none."""
    agent = rows.find(tx.connection, tx.namespace.name)
    if agent is not None and (metadata is None or agent.metadata is not None):
        return agent
    rows.ensure(tx.connection, tx.namespace_id, tx.now, metadata)
    return rows.require_agent(tx.connection, tx.scope)


EVERYTHING = Filters(include_archived=True)


class AgentFormat(Protocol):
    """How an agent is written: bytes that end with a line feed."""

    def header(self, agent: Agent, counts: AgentCounts) -> bytes: ...

    def agent(self, agent: Agent) -> bytes: ...

    def user(self, user: User) -> bytes: ...

    def session(self, session: Session) -> bytes: ...

    def message(self, message: Message) -> bytes: ...

    def block(self, block: Block) -> bytes: ...

    def memory(self, memory: Memory, history: Sequence[HistoryEntry] | None) -> bytes: ...


def agent_lines(engine: MemoryEngine, scope: Scope, written_as: AgentFormat) -> Generator[bytes]:
    """A header with exact counts, the agent, its users, sessions and messages (oldest first), blocks and memories.

    :raises AgentNotFound: If the namespace is no agent.
    """
    with engine.namespace(scope) as (connection, namespace):
        if namespace is None:
            raise AgentNotFound(scope.namespace)
        agent = require_agent(connection, scope)
        yield written_as.header(agent, agents.counts(connection, namespace.id))
        yield written_as.agent(agent)
        yield from map(written_as.user, sessions.users(connection, namespace.id)[0])
        yield from map(written_as.session, sessions.every(connection, namespace.id))
        yield from map(written_as.message, messages.every(connection, namespace.id))
        yield from map(written_as.block, blocks.page(connection, namespace.id)[0])
        yield from memory_lines(connection, namespace, EVERYTHING, written_as.memory, history=False)
