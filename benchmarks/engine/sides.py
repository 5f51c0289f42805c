"""The two compared stores behind the same four methods. Each call does one operation on the next text or id."""

from __future__ import annotations

import random
from itertools import count, islice
from pathlib import Path
from typing import Protocol

import faiss

from benchmarks.baselines.file_store import FileStore
from benchmarks.engine.corpus import DIM, Corpus, LookupEmbedder
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, MemoryPatch, Scope, SearchQuery
from souvenir.memories.engine import MemoryEngine

SOURCE = "benchmark/notes"
TOP_K = 10
BATCH = 1_000
SCOPE = Scope()


class Side(Protocol):
    def search(self) -> None: ...

    def add(self) -> None: ...

    def update(self) -> None: ...

    def delete(self) -> None: ...


class Ours:
    """The engine as the service runs it: real SQLite, every write on the disk before it returns."""

    def __init__(self, corpus: Corpus, settings: Settings, model_id: str) -> None:
        self.engine = MemoryEngine.open(settings, LookupEmbedder(corpus, model_id))
        self._corpus = corpus
        self._queries = count()
        self._spare = iter(corpus.texts[len(corpus.texts) - corpus.spare :])
        self._ids = list(range(1, len(corpus.texts) - corpus.spare + 1))
        self._dice = random.Random(0)

    def build(self) -> None:
        """Store the corpus in batches; a new database numbers it from 1."""
        texts = self._corpus.texts[: len(self._ids)]
        for start in range(0, len(texts), BATCH):
            drafts = [MemoryDraft(text, SOURCE) for text in texts[start : start + BATCH]]
            self.engine.add_batch(SCOPE, drafts)

    def add_unindexed(self, count: int) -> list[int]:
        """Store texts while no index is loaded, so that snapshots lack them as after a kill; return their ids."""
        drafts = [MemoryDraft(text, SOURCE) for text in islice(self._spare, count)]
        return self.engine.add_batch(SCOPE, drafts)

    def search(self) -> None:
        self.engine.search(SCOPE, self.query(next(self._queries)))

    def query(self, number: int) -> SearchQuery:
        return SearchQuery(self._corpus.queries[number % len(self._corpus.queries)], top_k=TOP_K)

    def add(self) -> None:
        added = self.engine.add(SCOPE, MemoryDraft(next(self._spare), SOURCE))
        if added.id is not None:
            self._ids.append(added.id)

    def update(self) -> None:
        self.engine.update(SCOPE, self._dice.choice(self._ids), MemoryPatch(text=next(self._spare)))

    def delete(self) -> None:
        position = self._dice.randrange(len(self._ids))
        self._ids[position], self._ids[-1] = self._ids[-1], self._ids[position]
        self.engine.delete(SCOPE, self._ids.pop())


class Baseline:
    """`FileStore`, which needs a fraction of the spare texts and goes round them in the same order."""

    def __init__(self, corpus: Corpus, folder: Path) -> None:
        self._corpus = corpus
        self._first_spare = len(corpus.texts) - corpus.spare
        self.store = FileStore(folder, DIM)
        self.store.add(list(corpus.texts[: self._first_spare]), corpus.vectors[: self._first_spare], SOURCE)
        self._queries = count()
        self._spare = count(self._first_spare)
        self._dice = random.Random(0)

    def search(self) -> None:
        number = next(self._queries) % len(self._corpus.queries)
        self.store.search(self._corpus.queries[number], self._corpus.query_vectors[number], TOP_K)

    def add(self) -> None:
        row = next(self._spare)
        self.store.add([self._corpus.texts[row]], self._corpus.vectors[row : row + 1], SOURCE)

    def update(self) -> None:
        row = next(self._spare)
        position = self._dice.randrange(len(self.store))
        self.store.update(position, self._corpus.texts[row], self._corpus.vectors[row])

    def delete(self) -> None:
        self.store.delete(self._dice.randrange(len(self.store)))


class FlatScan:
    """FAISS alone on one thread: what an exact search costs at least, and the yardstick for ours."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self._index = faiss.IndexFlatIP(DIM)
        self._index.add(corpus.vectors[: len(corpus.texts) - corpus.spare])
        self._queries = count()

    def search(self) -> None:
        number = next(self._queries) % len(self._corpus.queries)
        faiss.omp_set_num_threads(1)
        self._index.search(self._corpus.query_vectors[number : number + 1], TOP_K)
