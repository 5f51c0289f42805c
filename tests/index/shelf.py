"""A database and its index registry, wired as in the engine, with an analyser that counts its calls."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import count
from pathlib import Path

from souvenir.core.passages import Chunks, Passage
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, MemoryPatch, PassageKind, Scope
from souvenir.index.analyser import Analyser
from souvenir.index.cross_check import problems
from souvenir.index.index_key import IndexKey
from souvenir.index.namespace import NamespaceIndex
from souvenir.index.passage_view import PassageView
from souvenir.index.registry import IndexRegistry
from souvenir.index.snapshot import Origin, SnapshotFiles
from souvenir.retrieval.new_registry import word_rules
from souvenir.retrieval.preparation import PassageAnalyser, prepare
from souvenir.retrieval.profiles import PROFILES
from souvenir.store import namespaces
from souvenir.store.index_changes import IndexUpdate
from souvenir.store.namespace_view import NamespaceView
from souvenir.store.sqlite import generations
from souvenir.store.sqlite.database import SqliteDatabase
from souvenir.store.transaction import Transaction
from tests.fake_embedder import FakeEmbedder

NOW = datetime(2024, 3, 1, tzinfo=UTC)
PASSAGE_ANALYSER = PassageAnalyser(Analyser(), PROFILES)
RULES = {profile: word_rules(row) for profile, row in PROFILES.items()}
NO_LIMIT = 1 << 40


class CountingAnalyser:
    """The real analyser, with a count of analysed texts."""

    def __init__(self) -> None:
        self._analyser = PassageAnalyser(Analyser(), PROFILES)
        self._numbers = count(1)
        self.texts = 0

    def terms(self, text: str) -> Sequence[str]:
        return self._analyser.terms(text)

    def chunks(self, passage: Passage) -> Chunks:
        self.texts = next(self._numbers)
        return self._analyser.chunks(passage)


class Shelf:
    """Writes go to the database and then to the registry; `new_registry` simulates a restart."""

    def __init__(self, data_dir: Path) -> None:
        settings = Settings(data_dir=data_dir)
        self.index_dir = settings.index_dir
        self.database = SqliteDatabase.open(settings, FakeEmbedder.model_id)
        self.origin = Origin(FakeEmbedder.model_id, FakeEmbedder.dim, "1/english")
        self.loads = 0
        self.new_registry()

    def new_registry(self, *, max_bytes: int = NO_LIMIT, origin: Origin | None = None) -> IndexRegistry:
        """Return an empty registry; `origin` is the required origin of its snapshots."""
        self.analyser = CountingAnalyser()
        self.registry = IndexRegistry(
            self.open_view,
            SnapshotFiles(self.index_dir, origin or self.origin, self.database.warnings),
            self.analyser,
            dim=FakeEmbedder.dim,
            token_space=None,
            rules=RULES,
            max_bytes=max_bytes,
            committed=lambda: self.database.committed,
            on_load=self._count_load,
        )
        return self.registry

    def _count_load(self) -> None:
        self.loads += 1

    @contextmanager
    def open_view(self, key: IndexKey) -> Iterator[PassageView]:
        with self.database.read() as connection:
            yield NamespaceView(connection, key.namespace_id, key.kind, FakeEmbedder.model_id, FakeEmbedder.dim)

    def _apply(self, update: IndexUpdate) -> None:
        self.registry.apply(update.namespace_id, update.changes, update.change_seq)

    def add(self, *texts: str, namespace: str = "default") -> list[int]:
        prepared = prepare(texts, FakeEmbedder(), PASSAGE_ANALYSER)

        def work(tx: Transaction) -> list[int]:
            return [tx.insert(MemoryDraft(text, "notes"), part).id for text, part in zip(texts, prepared, strict=True)]

        return self.database.write(Scope(namespace), NOW, work, self._apply)

    def change(self, memory_id: int, patch: MemoryPatch) -> None:
        [passages] = prepare([patch.text or ""], FakeEmbedder(), PASSAGE_ANALYSER)
        self.database.write(Scope(), NOW, lambda tx: tx.update(memory_id, patch, passages), self._apply)

    def delete(self, ids: Sequence[int]) -> None:
        self.database.write(Scope(), NOW, lambda tx: tx.delete(ids), self._apply)

    def snapshot(self) -> None:
        self.database.between_writes(lambda: self.registry.write_snapshots(all_changed=True))

    def shrink(self) -> None:
        self.database.between_writes(self.registry.shrink)

    def sweep(self, changed: Container[int] = ()) -> bool:
        with self.database.read() as connection:
            known, includes = namespaces.ids(connection), partial(generations.includes, connection)
            return self.registry.sweep_snapshots(known, changed, includes)

    def namespace_id(self, name: str = "default") -> int:
        with self.database.read() as connection:
            namespace = namespaces.named(connection, name)
        assert namespace is not None
        return namespace.id

    def key(self, namespace: str = "default") -> IndexKey:
        return IndexKey(self.namespace_id(namespace), PassageKind.MEMORY)

    def index(self, namespace: str = "default") -> NamespaceIndex:
        return self.registry.get(self.key(namespace), 0)

    def problems(self, namespace: str = "default") -> list[str]:
        """Return differences between the loaded index and the database, between two writes."""
        key = self.key(namespace)
        index = self.registry.get(key, 0)

        def compare() -> list[str]:
            with self.database.reader() as connection:
                model = FakeEmbedder.model_id, FakeEmbedder.dim
                truth = NamespaceView(connection, key.namespace_id, key.kind, *model)
                found = problems(index, truth.passages(None), PASSAGE_ANALYSER.chunks)
                return found if index.change_seq == truth.change_seq else [*found, "it stands at another write"]

        return self.database.between_writes(compare)

    def close(self) -> None:
        self.database.close()
