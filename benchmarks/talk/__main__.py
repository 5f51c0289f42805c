"""The cost of search and add in one agent's long history, compared with BM25 and FAISS fused by rank.

    python -m benchmarks.talk
    python -m benchmarks.talk --messages 10000

One agent with 100,000 messages: turns between people who have names (`talk`), or of a user and an assistant (`chat`),
in sessions of 25. Words and vectors are synthetic (`benchmarks.engine.corpus`) and handed out, so nothing is embedded.
Search is `engine.recall`, which is all of a search but for reading the messages; add is `Conversations.add`, synced to
the disk. The peer is rank_bm25 with our analyser's terms and FAISS flat on one thread, in turns with ours; its index is
never written to. The first ten are also compared with a ranking that scores every message.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from unittest.mock import patch

import faiss
import numpy as np
from rank_bm25 import BM25Okapi

from benchmarks.engine.corpus import DIM, Corpus, LookupEmbedder, make_corpus
from benchmarks.report import Target, percentile_ms, print_targets, progress, table, write_results
from souvenir.conversations.messages import Conversations
from souvenir.core.settings import Settings
from souvenir.core.types import FloatVector, MessageRole, PassageKind, Scope, SearchQuery
from souvenir.index.analyser import Analyser
from souvenir.memories.engine import MemoryEngine
from souvenir.retrieval import recall
from souvenir.store.messages.messages import MessageDraft

SCOPE = Scope("ann")
SPEAKERS = ("Ann", "Ben")
SESSION_LENGTH = 25
QUESTIONS = ADDS = 200
PEER_QUESTIONS = 20
BATCH = 1_000
TOP_K = 10
RRF_K = 60
SEARCH_P50_MS, ADD_P50_MS, CUT_RECALL = 40.0, 2.0, 0.99

SEARCH, ADD, PEER, FAISS_ALONE = "search", "add", "BM25 and FAISS by ranks", "FAISS alone"
Drafts = Callable[[Sequence[str], int], list[MessageDraft]]


class TurnEmbedder(LookupEmbedder):
    """Hands out a text's vector, whoever says it."""

    def embed_documents(self, texts: Sequence[str]) -> FloatVector:
        return super().embed_documents([text.partition(": ")[2] or text for text in texts])


class Peer:
    """What everybody builds first, over texts that never change."""

    def __init__(self, corpus: Corpus, count: int) -> None:
        self._analyser = Analyser()
        self._words = BM25Okapi([self._analyser.terms(text) for text in corpus.texts[:count]])
        self._vectors = faiss.IndexFlatIP(DIM)
        self._vectors.add(corpus.vectors[:count])
        self._corpus = corpus

    def search(self, number: int) -> list[int]:
        words = np.argsort(-self._words.get_scores(self._analyser.terms(self._corpus.queries[number])))
        scores: defaultdict[int, float] = defaultdict(float)
        for rows in (words[: 3 * TOP_K].tolist(), self.nearest(number)):
            for rank, row in enumerate(rows, 1):
                scores[row] += 1.0 / (RRF_K + rank)
        return sorted(scores, key=lambda row: -scores[row])[:TOP_K]

    def nearest(self, number: int) -> list[int]:
        faiss.omp_set_num_threads(1)
        rows: list[int] = self._vectors.search(self._corpus.query_vectors[number][None, :], 3 * TOP_K)[1][0].tolist()
        return rows


def talk(texts: Sequence[str], first: int) -> list[MessageDraft]:
    """Turns of two people, the first of these texts being the conversation's so many-eth."""
    return [
        MessageDraft(MessageRole.USER, text, session_id=_session(number), speaker=SPEAKERS[number % 2])
        for number, text in enumerate(texts, first)
    ]


def chat(texts: Sequence[str], first: int) -> list[MessageDraft]:
    roles = (MessageRole.USER, MessageRole.ASSISTANT)
    return [
        MessageDraft(roles[number % 2], text, session_id=_session(number)) for number, text in enumerate(texts, first)
    ]


def _session(number: int) -> str:
    return f"session {number // SESSION_LENGTH}"


@contextmanager
def filled(corpus: Corpus, count: int, drafts: Drafts) -> Iterator[MemoryEngine]:
    with tempfile.TemporaryDirectory(prefix="souvenir-bench-") as folder:
        engine = MemoryEngine.open(Settings(data_dir=Path(folder)), TurnEmbedder(corpus, "handed-out"))
        conversations = Conversations(engine)
        for first in range(0, count, BATCH):
            conversations.add(SCOPE, drafts(corpus.texts[first : min(first + BATCH, count)], first))
        try:
            yield engine
        finally:
            engine.close()


def measure(corpus: Corpus, count: int, drafts: Drafts, peer: Peer) -> tuple[dict[str, list[float]], float]:
    """Seconds of every operation, and the share of an uncut ranking's first ten that is found."""
    seconds: defaultdict[str, list[float]] = defaultdict(list)
    with filled(corpus, count, drafts) as engine:
        conversations = Conversations(engine)

        def add(number: int) -> object:
            return conversations.add(SCOPE, drafts([corpus.texts[count + number]], count + number))

        search = partial(_found, engine, corpus)
        verbs: dict[str, Callable[[int], object]] = {SEARCH: search, FAISS_ALONE: peer.nearest, ADD: add}
        for verb in verbs.values():
            verb(ADDS)
        for number in range(QUESTIONS):
            turns = verbs if number >= PEER_QUESTIONS else {**verbs, PEER: peer.search}
            for name, verb in turns.items():
                begin = time.perf_counter()
                verb(number)
                seconds[name].append(time.perf_counter() - begin)
        cut = [_found(engine, corpus, number) for number in range(QUESTIONS // 2)]
        with patch.object(recall, "CANDIDATE_COUNT", count + ADDS + 1):
            full = [_found(engine, corpus, number) for number in range(QUESTIONS // 2)]
    return seconds, sum(len(a & b) for a, b in zip(cut, full, strict=True)) / sum(map(len, full))


def _found(engine: MemoryEngine, corpus: Corpus, number: int) -> set[int]:
    found = engine.recall(SCOPE, PassageKind.MESSAGE, SearchQuery(corpus.queries[number], TOP_K))
    if found is None or found.degraded:
        raise RuntimeError("the search did not run whole")
    return set(found.owner_ids)


def run(count: int) -> bool:
    corpus = make_corpus(count, spare=ADDS + 1, query_count=QUESTIONS + 1)
    peer = Peer(corpus, count)
    figures: dict[str, dict[str, float]] = {}
    rows: list[tuple[str, ...]] = []
    targets: list[Target] = []
    for name, drafts in (("talk", talk), ("chat", chat)):
        progress(f"{count} messages of a {name}")
        seconds, cut = measure(corpus, count, drafts, peer)
        ms = {verb: percentile_ms(of, 50) for verb, of in seconds.items()}
        figures[name] = {**{f"{verb}_p50_ms": value for verb, value in ms.items()}, "recall_of_cut": cut}
        rows += [
            (name, verb, f"{ms[verb]:.2f}", f"{percentile_ms(of, 95):.2f}", f"{ms[PEER] / ms[verb]:.2f}")
            for verb, of in seconds.items()
        ]
        targets += [
            Target(f"{name}: search, p50 ms", ms[SEARCH], SEARCH_P50_MS),
            Target(f"{name}: add, p50 ms", ms[ADD], ADD_P50_MS),
            Target(f"{name}: of the uncut first ten found", cut, CUT_RECALL, at_least=True),
        ]
    print("\n" + table(("messages of a", "operation", "p50 ms", "p95 ms", "peer's search / this"), rows))
    print_targets(targets)
    print(f"\n{write_results('talk', {'messages': count, 'figures': figures}, targets)}")
    return all(target.met for target in targets)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=100_000)
    return 0 if run(parser.parse_args().messages) else 1


if __name__ == "__main__":
    sys.exit(main())
