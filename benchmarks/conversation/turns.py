"""Operations in a random order per round, each timed separately."""

from __future__ import annotations

import asyncio
import random
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator

from benchmarks.conversation.filling import AGENT, SCOPE
from benchmarks.conversation.peer import NEWEST, BlobScan
from benchmarks.load.sentences import memories, questions
from benchmarks.report import percentile_ms, progress
from souvenir.conversations import MemoryManager
from souvenir.conversations.context import ContextQuery, Contexts
from souvenir.conversations.messages import Conversations
from souvenir.memories.engine import MemoryEngine

OPERATIONS = 10
"""Of each verb in a round."""

PEER_BUDGET_S = 30.0
"""Seconds that the peer's search of all messages gets in all: it takes seconds each, and a few are enough."""

LIMIT = 5

ADD, GET, SEARCH, RECALL = "session add", "session get", "history search", "long-term recall"
CONTEXT, AGENT_CONTEXT = "build_context_for_llm", "context of POST /context"
PEER_NEWEST, PEER_ALL = "peer, of the newest 1,000", "peer, of all messages"

Verbs = dict[str, Callable[[], Awaitable[object]]]


class Durations:
    """Seconds of every operation, by what was done."""

    def __init__(self) -> None:
        self._seconds: defaultdict[str, list[float]] = defaultdict(list)

    async def time(self, verb: str, operation: Callable[[], Awaitable[object]]) -> None:
        begin = time.perf_counter()
        await operation()
        self._seconds[verb].append(time.perf_counter() - begin)

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
    durations, dice = Durations(), random.Random(0)
    async with MemoryManager.over(engine, agent=AGENT) as manager:
        await manager.start_conversation()
        verbs = verbs_of(manager, engine, peer, new_questions())
        for operation in verbs.values():
            await operation()
        scan_all = verbs.pop(PEER_ALL)
        for number in range(1, rounds + 1):
            turns = [verb for verb in verbs for _ in range(OPERATIONS)]
            for verb in dice.sample(turns, len(turns)):
                await durations.time(verb, verbs[verb])
            if sum(durations.of(PEER_ALL)) < PEER_BUDGET_S:
                await durations.time(PEER_ALL, scan_all)
            progress(f"round {number} of {rounds}; context so far {durations.ms(CONTEXT, 50):.1f} ms")
    return durations


def verbs_of(manager: MemoryManager, engine: MemoryEngine, peer: BlobScan, asked: Iterator[str]) -> Verbs:
    """All from the event loop: what blocks runs in a thread, as in a service that is asked."""
    said = memories(seed=2)
    contexts = Contexts(engine, Conversations(engine))
    return {
        ADD: lambda: manager.add_to_session("user", next(said)),
        GET: manager.get_session_context,
        SEARCH: lambda: manager.search_history(next(asked), LIMIT),
        RECALL: lambda: manager.recall(next(asked)),
        CONTEXT: lambda: manager.build_context_for_llm(next(asked)),
        AGENT_CONTEXT: lambda: asyncio.to_thread(contexts.build, SCOPE, ContextQuery(next(asked))),
        PEER_NEWEST: lambda: asyncio.to_thread(peer.search, next(asked), limit=LIMIT, newest=NEWEST),
        PEER_ALL: lambda: asyncio.to_thread(peer.search, next(asked), limit=LIMIT, newest=None),
    }


def new_questions() -> Iterator[str]:
    """Each a new one, so that no cache knows its vector; without the number that would be a word that nothing knows."""
    seen: set[str] = set()
    for asked in questions(seed=3):
        question = asked.partition(" Case ")[0]
        if question not in seen:
            seen.add(question)
            yield question
