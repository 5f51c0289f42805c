"""The registry of indexes over one database, one model and one analyser."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from souvenir.engine.preparation import PassageAnalyser
from souvenir.index.analyser import ANALYSER_VERSION
from souvenir.index.lexical import Bm25Constants
from souvenir.index.passage_words import SpreadRule, WordRules
from souvenir.index.registry import IndexKey, IndexRegistry
from souvenir.index.snapshot import Origin, SnapshotFiles
from souvenir.search.profiles import Constants, Spread
from souvenir.settings import Settings
from souvenir.store import reads
from souvenir.store.database import Database
from souvenir.types import Embedder


def new_registry(
    settings: Settings,
    embedder: Embedder,
    analyser: PassageAnalyser,
    database: Database,
    *,
    on_load: Callable[[], None],
) -> IndexRegistry:
    """A registry that has loaded nothing yet.

    :param on_load: Called after an index was loaded.
    """

    @contextmanager
    def open_view(key: IndexKey) -> Iterator[reads.NamespaceView]:
        with database.read() as connection:
            yield reads.NamespaceView(connection, key.namespace_id, key.kind, embedder.model_id)

    rules = {profile: word_rules(constants) for profile, constants in analyser.profiles.items()}
    origin = Origin(
        lineage=database.lineage,
        model_id=embedder.model_id,
        dim=embedder.dim,
        analyser=f"{ANALYSER_VERSION}/{settings.analyser_language}",
    )
    return IndexRegistry(
        open_view,
        SnapshotFiles(settings.index_dir, origin, rules),
        analyser,
        dim=embedder.dim,
        rules=rules,
        max_bytes=settings.index_memory_mb * 1024 * 1024,
        on_load=on_load,
    )


def word_rules(constants: Constants) -> WordRules:
    """What an index knows of a profile's constants."""
    return WordRules(Bm25Constants(constants.k1, constants.b), _spread_rule(constants.spread))


def _spread_rule(spread: Spread) -> SpreadRule:
    faded = [spread.decay**distance for distance in range(spread.turns)]
    return SpreadRule(
        back=tuple(spread.back * share for share in faded),
        forward=tuple(spread.forward * share for share in faded),
        after_question=spread.after_question,
    )
