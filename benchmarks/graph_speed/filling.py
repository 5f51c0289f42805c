"""Indexing throughput of a graph: in bulk, and during a steady stream of new messages."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from benchmarks.graph_speed.reading import SCOPE, Reads
from benchmarks.graph_speed.talks import Talks
from benchmarks.report import progress
from souvenir.conversations.messages import Conversations
from souvenir.core.types import Embedder, FloatVector, PlainEmbedder
from souvenir.knowledge.services import KnowledgeServices
from souvenir.memories.engine import MemoryEngine
from souvenir.store.graph import mention_queue
from souvenir.store.messages.messages import MessageDraft

BATCH = 500


class HandedOut(PlainEmbedder):
    """A model whose vectors of messages cost nothing, and whose vectors of all else are its own.

    :param model: Loaded.
    """

    def __init__(self, model: Embedder) -> None:
        self._model = model
        self._random = np.random.default_rng(0)
        self.model_id, self.dim, self.max_tokens = model.model_id, model.dim, model.max_tokens
        self.messages: set[str] = set()

    @property
    def ready(self) -> bool:
        return self._model.ready

    def embed_documents(self, texts: Sequence[str]) -> FloatVector:
        if texts and all(text in self.messages for text in texts):
            drawn = self._random.standard_normal((len(texts), self.dim), dtype=np.float32)
            vectors: FloatVector = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
            return vectors
        return self._model.embed_documents(texts)

    def embed_query(self, text: str) -> FloatVector:
        return self._model.embed_query(text)

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        return self._model.token_offsets(text)

    def known_share(self, text: str) -> float:
        return self._model.known_share(text)

    def say(self, conversations: Conversations, drafts: Sequence[MessageDraft]) -> None:
        """Store messages, without what embedding them would cost."""
        self.messages = {draft.content for draft in drafts}
        conversations.add(SCOPE, drafts)
        self.messages = set()


Figures = dict[str, float]


def fill(engine: MemoryEngine, graph: KnowledgeServices, embedder: HandedOut, messages: int) -> Figures:
    """Store what is not there yet, then let it all be read at once; `cpu_s` is the time of the core for that."""
    conversations, there = Conversations(engine), _count(engine, "messages")
    drafts = list(Talks().drafts(messages))[there:]
    for start in range(0, len(drafts), BATCH):
        embedder.say(conversations, drafts[start : start + BATCH])
    progress(f"{messages:,} messages are stored")
    waiting = _waiting(engine)
    began, cpu_began = time.perf_counter(), time.process_time()
    graph.indexer.catch_up()
    seconds, cpu_s = time.perf_counter() - began, time.process_time() - cpu_began
    progress(f"{waiting:,} messages are read")
    counts = {name: _count(engine, name) for name in ("concepts", "neighbours")}
    per_s = waiting / seconds if seconds else float("nan")
    return {"messages": waiting, "seconds": seconds, "cpu_s": cpu_s, **counts, "per_s": per_s}


def paced(
    engine: MemoryEngine, graph: KnowledgeServices, embedder: HandedOut, reads: Reads, *, seconds: float, per_s: float
) -> tuple[Figures, dict[str, list[float]]]:
    """Store messages at a steady pace, one by one, while the graph fills in its thread and others read it.

    :returns: `late_s`, how much later than planned the last one was stored; `waiting`, unread at the end; and the
        seconds of reads.
    """
    found: defaultdict[str, list[float]] = defaultdict(list)
    conversations, late_s = Conversations(engine), 0.0
    drafts = list(Talks(seed=1).drafts(int(seconds * per_s)))
    names = list(reads.verbs)
    graph.start()
    began = time.perf_counter()
    for number, draft in enumerate(drafts):
        due = began + number / per_s
        time.sleep(max(0.0, due - time.perf_counter()))
        embedder.say(conversations, [draft])
        late_s = time.perf_counter() - due
        if number % int(per_s // 5) == 0:
            name = names[number // int(per_s // 5) % len(names)]
            found[name].append(reads.timed(name))
    seconds, waiting = time.perf_counter() - began, _waiting(engine)
    graph.close()
    progress("stored at a steady pace")
    return {"messages": len(drafts), "seconds": seconds, "late_s": late_s, "waiting": waiting}, found


def _count(engine: MemoryEngine, table: str) -> int:
    with engine.namespace(SCOPE) as (connection, _):
        return int(connection.execute(f"SELECT count(*) FROM {table}").get)


def _waiting(engine: MemoryEngine) -> int:
    with engine.namespace(SCOPE) as (connection, namespace):
        return 0 if namespace is None else mention_queue.count(connection, namespace.id)
