"""The registry of the indexes of one model's vectors, empty at first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from souvenir.core.settings import Settings
from souvenir.core.types import Embedder
from souvenir.index.analyser import ANALYSER_VERSION
from souvenir.index.index_key import IndexKey
from souvenir.index.lexical import Bm25Constants
from souvenir.index.passage_words import SpreadRule, WordRules
from souvenir.index.registry import IndexRegistry
from souvenir.index.snapshot import Origin, SnapshotFiles
from souvenir.retrieval.preparation import PassageAnalyser
from souvenir.retrieval.profiles import Constants, Spread
from souvenir.store.database import Database
from souvenir.store.namespace_view import NamespaceView
from souvenir.store.sql import Connection


def view_of(connection: Connection, key: IndexKey, embedder: Embedder, database: Database) -> NamespaceView:
    """:raises ModelReplaced: If this is not the model of the database any more."""
    database.require_model(connection, embedder.model_id)
    return NamespaceView(connection, key.namespace_id, key.kind, embedder.model_id, embedder.dim)


def new_registry(
    settings: Settings,
    embedder: Embedder,
    analyser: PassageAnalyser,
    database: Database,
    *,
    on_load: Callable[[], None],
) -> IndexRegistry:
    """Return an empty registry.

    :param on_load: Called after an index was loaded.
    """

    @contextmanager
    def open_view(key: IndexKey) -> Iterator[NamespaceView]:
        with database.read() as connection:
            yield view_of(connection, key, embedder, database)

    rules = {profile: word_rules(constants) for profile, constants in analyser.profiles.items()}
    origin = Origin(
        model_id=embedder.model_id,
        dim=embedder.dim,
        analyser=f"{ANALYSER_VERSION}/{settings.analyser_language}",
        token_space=embedder.token_space,
    )
    return IndexRegistry(
        open_view,
        SnapshotFiles(settings.index_dir, origin, database.warnings),
        analyser,
        dim=embedder.dim,
        token_space=embedder.token_space,
        rules=rules,
        max_bytes=settings.index_memory_mb * 1024 * 1024,
        committed=lambda: database.committed,
        on_load=on_load,
        follows=database.is_shared,
    )


def word_rules(constants: Constants) -> WordRules:
    """Return the part of a profile's constants that an index needs."""
    return WordRules(Bm25Constants(constants.k1, constants.b), _spread_rule(constants.spread))


def _spread_rule(spread: Spread) -> SpreadRule:
    faded = [spread.decay**distance for distance in range(spread.turns)]
    return SpreadRule(
        back=tuple(spread.back * share for share in faded),
        forward=tuple(spread.forward * share for share in faded),
        after_question=spread.after_question,
    )
