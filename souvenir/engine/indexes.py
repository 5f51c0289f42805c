"""The registry of indexes over one database, one model and one analyser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from souvenir.index.analyser import ANALYSER_VERSION, Analyser
from souvenir.index.lexical import Bm25Constants
from souvenir.index.registry import IndexKey, IndexRegistry
from souvenir.index.snapshot import Origin, SnapshotFiles
from souvenir.search.profiles import PROFILES
from souvenir.settings import Settings
from souvenir.store import reads
from souvenir.store.database import Database
from souvenir.types import Embedder


def new_registry(
    settings: Settings, embedder: Embedder, analyser: Analyser, database: Database, *, on_load: Callable[[], None]
) -> IndexRegistry:
    """A registry that has loaded nothing yet.

    :param on_load: Called after an index was loaded.
    """

    @contextmanager
    def open_view(key: IndexKey) -> Iterator[reads.NamespaceView]:
        with database.read() as connection:
            yield reads.NamespaceView(connection, key.namespace_id, key.kind, embedder.model_id)

    constants = {profile: Bm25Constants(row.k1, row.b) for profile, row in PROFILES.items()}
    origin = Origin(
        lineage=database.lineage,
        model_id=embedder.model_id,
        dim=embedder.dim,
        analyser=f"{ANALYSER_VERSION}/{settings.analyser_language}",
    )
    return IndexRegistry(
        open_view,
        SnapshotFiles(settings.index_dir, origin, constants),
        analyser.terms,
        dim=embedder.dim,
        constants=constants,
        max_bytes=settings.index_memory_mb * 1024 * 1024,
        on_load=on_load,
    )
