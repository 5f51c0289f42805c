"""One turn of every verb after the other, operation by operation, each timed by itself."""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable
from itertools import count

from benchmarks.conversation.filling import AGENT, SCOPE
from benchmarks.conversation.peer import NEWEST, BlobScan
from benchmarks.load.sentences import memories, questions
from benchmarks.report import percentile_ms, progress
from memory_engine import MemoryEngine
from souvenir.conversation.context import ContextQuery, Contexts
from souvenir.conversation.manager import MemoryManager
from souvenir.conversation.messages import Conversations
from souvenir.settings import Settings

OPERATIONS = 10
"""Of each verb in a round."""

PEER_BUDGET_S = 30.0
"""Seconds that the peer's search of all messages gets in all: it takes seconds each, and a few are enough."""

LIMIT = 5

ADD, GET, SEARCH, RECALL = "session add", "session get", "history search", "long-term recall"
CONTEXT, AGENT_CONTEXT = "build_context_for_llm", "context of POST /context"
PEER_NEWEST, PEER_ALL = "peer, of the newest 1,000", "peer, of all messages"


class Durations:
    """Seconds of every operation, by what was done."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, list[float]] = defaultdict(list)

    def add(self, verb: str, seconds: float) -> None:
        self._seconds[verb].append(seconds)

    def of(self, verb: str) -> list[float]:
        return self._seconds[verb]

    def ms(self, verb: str, percent: float) -> float:
        return percentile_ms(self._seconds[verb], percent)

    def summary(self) -> dict[str, dict[str, float]]:
        return {
            verb: {"count": len(seconds), "p50": self.ms(verb, 50), "p95": self.ms(verb, 95), "p99": self.ms(verb, 99)}
            for verb, seconds in self._seconds.items()
        }


async def measure(engine: MemoryEngine, peer: BlobScan, rounds: int) -> Durations:
    """The agent's manager as an assistant uses it, in a conversation that runs."""
    durations = Durations()
    contexts = Contexts(engine, Conversations(engine), max_messages=Settings().max_context_messages)
    said, asked, numbers = memories(seed=2), questions(seed=3), count()
    async with MemoryManager.over(engine, agent=AGENT) as manager:
        await manager.start_conversation()
        await manager.add_to_session("user", next(said))
        await manager.build_context_for_llm(next(asked))

        async def timed(verb: str, operation: Awaitable[object]) -> None:
            begin = time.perf_counter()
            await operation
            durations.add(verb, time.perf_counter() - begin)

        for number in range(1, rounds + 1):
            for _ in range(OPERATIONS):
                role = "assistant" if next(numbers) % 2 else "user"
                await timed(ADD, manager.add_to_session(role, next(said)))
                await timed(GET, manager.get_session_context())
                await timed(SEARCH, manager.search_history(next(asked), LIMIT))
                await timed(RECALL, manager.recall(next(asked)))
                await timed(CONTEXT, manager.build_context_for_llm(next(asked)))
                query = ContextQuery(next(asked))
                await timed(AGENT_CONTEXT, asyncio.to_thread(contexts.build, SCOPE, query))
                _peer_turn(peer, PEER_NEWEST, NEWEST, next(asked), durations)
            if sum(durations.of(PEER_ALL)) < PEER_BUDGET_S:
                _peer_turn(peer, PEER_ALL, None, next(asked), durations)
            progress(f"round {number} of {rounds}; context so far {durations.ms(CONTEXT, 50):.1f} ms")
    return durations


def _peer_turn(peer: BlobScan, verb: str, newest: int | None, query: str, durations: Durations) -> None:
    begin = time.perf_counter()
    peer.search(query, limit=LIMIT, newest=newest)
    durations.add(verb, time.perf_counter() - begin)
