"""An agent that forgets everything and stays: its name, its metadata, its privacy policy and its access levels."""

from __future__ import annotations

from memory_engine import MemoryEngine
from souvenir.conversation.agents import Agents
from souvenir.erasure.removals import Removals
from souvenir.store.removal import Removed
from souvenir.store.selection import Chooses
from souvenir.types import Scope

BACKUP_REASON = "pre_clear"


def clear(engine: MemoryEngine, agents: Agents, removals: Removals, scope: Scope) -> Removed:
    """Forget all that an agent's namespace holds, after a backup; how many rows went.

    The agent is made again as it was as soon as its name is free, also if the removal takes too long to wait for.

    :raises AgentNotFound: If the namespace is no agent.
    :raises DeadlineExceeded: If it takes too long to wait for; it goes on.
    """
    agent = agents.get(scope)
    engine.back_up(reason=BACKUP_REASON)
    try:
        return removals.remove(scope, Chooses.AGENT)
    finally:
        agents.create(scope, agent.metadata)
        agents.set_policy(scope, agent.policy)
        levels = agent.access
        agents.set_access(
            scope, {"quick_memory": levels.quick_memory, "full_memory": levels.full_memory, "logs": levels.logs}
        )
