"""Everything that an agent has, as lines for an export: one state of it, in one read transaction."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Protocol

from memory_engine import MemoryEngine
from souvenir.errors import AgentNotFound
from souvenir.store import agents, blocks, messages, sessions
from souvenir.store.agents import Agent, AgentCounts, known
from souvenir.store.blocks import Block
from souvenir.store.messages import Message
from souvenir.store.sessions import Session, User
from souvenir.transfer.export import memory_lines
from souvenir.types import Filters, HistoryEntry, Memory, Scope

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
        agent = known(connection, scope)
        yield written_as.header(agent, agents.counts(connection, namespace.id))
        yield written_as.agent(agent)
        yield from map(written_as.user, sessions.users(connection, namespace.id)[0])
        yield from map(written_as.session, sessions.every(connection, namespace.id))
        yield from map(written_as.message, messages.every(connection, namespace.id))
        yield from map(written_as.block, blocks.page(connection, namespace.id)[0])
        yield from memory_lines(connection, namespace, EVERYTHING, written_as.memory, history=False)
