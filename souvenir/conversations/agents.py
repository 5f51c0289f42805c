"""Agents: namespaces that clients address by name. A write to a new agent creates it."""

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
    """`index_bytes` is the memory used by the agent's loaded indexes."""

    counts: AgentCounts
    index_bytes: int


class Agents:
    """The agents of one engine; the scope's namespace is the agent."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    def create(self, scope: Scope, metadata: JsonObject | None = None, *, once: Once | None = None) -> Agent:
        """Create the scope's agent if it is new; existing metadata is kept."""
        if metadata is not None:
            metadata = self._engine.screening.metadata(scope, metadata)

        def work(tx: Transaction) -> Agent:
            return do_once(
                tx,
                once,
                lambda: ensure_agent(tx, metadata),
                ids=lambda agent: [agent.uid],
                again=lambda _: rows.require_agent(tx.connection, scope),
            )

        return self._engine.write(scope, work)

    def set_policy(self, scope: Scope, changes: JsonObject) -> None:
        """Set the agent's privacy policy: the rules with these changes.

        :raises AgentNotFound: If the namespace is no agent.
        :raises InvalidRequest: If the rules have no such topic.
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
        """Return the access levels of the namespace; without an agent there are no limits."""
        with self._engine.namespace(scope) as (connection, _):
            return rows.access(connection, scope.namespace)

    def set_access(self, scope: Scope, changes: Mapping[str, bool]) -> AccessLevels:
        """Change some of the agent's access levels, given by name; the others are kept.

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

    def page(self, *, only: str | None, prefix: str, offset: int, limit: int) -> tuple[Sequence[Agent], int]:
        """Return a page of agents ordered by name, and their total number.

        :param only: The only visible name, if the caller may not see all.
        :param prefix: The beginning of the names, in the same case; empty for all.
        """
        with self._engine.namespace(Scope()) as (connection, _):
            return rows.page(connection, only=only, prefix=prefix, offset=offset, limit=limit)


def ensure_agent(tx: Transaction, metadata: JsonObject | None = None) -> Agent:
    """Return the agent of the transaction's namespace, created if necessary."""
    agent = rows.find(tx.connection, tx.namespace.name)
    if agent is not None and (metadata is None or agent.metadata is not None):
        return agent
    rows.ensure(tx.connection, tx.namespace_id, tx.now, metadata)
    return rows.require_agent(tx.connection, tx.scope)


EVERYTHING = Filters(include_archived=True)


class AgentFormat(Protocol):
    """A file format: bytes that end with a line feed."""

    def header(self, agent: Agent, counts: AgentCounts) -> bytes: ...

    def agent(self, agent: Agent) -> bytes: ...

    def user(self, user: User) -> bytes: ...

    def session(self, session: Session) -> bytes: ...

    def message(self, message: Message) -> bytes: ...

    def block(self, block: Block) -> bytes: ...

    def memory(self, memory: Memory, history: Sequence[HistoryEntry] | None) -> bytes: ...


def agent_lines(engine: MemoryEngine, scope: Scope, written_as: AgentFormat) -> Generator[bytes]:
    """Yield a header with exact counts, the agent, users, sessions and messages (oldest first), blocks and memories.

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
