"""Moving a whole store from SQLite to PostgreSQL or back, while no service uses it.

The target keeps all ids, and gives none of the source's again. Until all rows are copied and compared, a mark in its
`meta` keeps services from using it, and a migration that was killed goes on. The source is not changed. In the end
searches are asked of both.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from pydantic import SecretStr

from souvenir.core.database_settings import SCHEMES
from souvenir.core.errors import InvalidRequest, SouvenirError, StoreUnusable
from souvenir.core.settings import Settings
from souvenir.core.timestamps import utc_now
from souvenir.core.types import Embedder, Scope, SearchQuery
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.reembedding import MakeEmbedder, chosen_model
from souvenir.store import meta, vectors
from souvenir.transfer.migration_rows import Table, compare, copy, tables
from souvenir.transfer.migration_stores import (
    MIGRATION,
    MovedStore,
    SqliteStore,
    Work,
    begin_or_go_on,
    require_finished_jobs,
    state_of,
)

SEED = 20_230_508
"""The same memories are chosen in every run."""

QUERY_CHARS = 1_000
TOP_K = 10
TOLERANCE = 1e-4
"""Scores depend a little on the order of rows in an index: sums of floats do, and which of equal candidates is last."""

REPORTED_EVERY = 100_000

Say = Callable[[str], None]
_Answer = list[tuple[int, float]]
"""Ids and scores, best first."""


@dataclass(frozen=True, slots=True)
class Migration:
    """:param source: A data folder, or the URL of a database in PostgreSQL. :param target: One of the other kind.

    :param searches: The number of searches that are compared.
    """

    source: str
    target: str
    searches: int


@dataclass(frozen=True, slots=True)
class _Sample:
    """A search for the text of a stored memory."""

    namespace: str
    text: str


def migrate_store(settings: Settings, order: Migration, say: Say, make: MakeEmbedder | None = None) -> None:
    """Move a store, and report each step.

    :param settings: Of all that is not the place of the store. :param make: Creates the embedder of searches.
    :raises InvalidRequest: If both places are of the same kind.
    :raises StoreUnusable: If the source cannot be moved, the target is not empty, or both differ in the end.
    """
    if is_url(order.source) == is_url(order.target):
        raise InvalidRequest(
            "A migration moves a store between a data folder and PostgreSQL, and both places are of one kind; copy a "
            "data folder with a backup and a restore, and a database with pg_dump and pg_restore"
        )
    at_source, at_target = (_settings_of(settings, place) for place in (order.source, order.target))
    with opened(at_source, is_target=False) as source, opened(at_target, is_target=True) as target:
        _move(source, target, say)
        samples = _samples(source, order.searches)
        model_id = meta.get(source.connection, vectors.MODEL) or ""
    if samples:
        _compare_searches([at_source, at_target], samples, model_id, say, make)


def is_url(place: str) -> bool:
    return place.startswith(SCHEMES)


def _settings_of(settings: Settings, place: str) -> Settings:
    if is_url(place):
        return settings.model_copy(update={"database_url": SecretStr(place)})
    at_folder = {"database_url": None, "data_dir": Path(place).expanduser(), "db_path": None}
    # The engine that answers searches would make a backup that is due.
    return settings.model_copy(update={**at_folder, "backup_interval_hours": 0.0})


@contextmanager
def opened(settings: Settings, *, is_target: bool, work: Work = MIGRATION) -> Iterator[MovedStore]:
    """Open the store of the settings for this process alone.

    :raises StoreUnusable: If it cannot be used, or another process uses it.
    """
    chosen: AbstractContextManager[MovedStore]
    if settings.database_url is None:
        chosen = SqliteStore.open(settings, is_target=is_target, work=work)
    else:
        # Its libraries are not installed everywhere.
        from souvenir.transfer.migration_postgres import PostgresStore

        chosen = PostgresStore.open(settings, work)
    with chosen as store:
        yield store


def _move(source: MovedStore, target: MovedStore, say: Say) -> None:
    meta.require_no_migration(source.connection)
    require_finished_jobs(source)
    source.require_sound()
    source.require_movable()
    state = state_of(source)
    if begin_or_go_on(target, state):
        say(f"{target.name} is the unfinished target of this migration, which goes on")
    with source.reading():
        for table in tables():
            _copy(table, source, target, say)
        target.complete(source.counters())
        with target.reading():
            rows = sum(_compare(table, source, target, say) for table in tables())
    source.require_alone()
    target.require_alone()
    if state_of(source) != state:
        raise StoreUnusable(
            f"{source.name} was written to while it was moved; stop its services, delete all of {target.name}, and "
            "migrate again"
        )
    target.end()
    say(f"{rows} rows of {source.name} are in {target.name}, all compared")


def _copy(table: Table, source: MovedStore, target: MovedStore, say: Say) -> None:
    copied = reported = 0
    for rows in copy(table, source.connection, target.connection, target.insert):
        copied += rows
        if copied - reported >= REPORTED_EVERY:
            reported = copied
            say(f"{table.name}: {copied} rows copied so far")
    if copied:
        say(f"{table.name}: {copied} rows copied")


def _compare(table: Table, source: MovedStore, target: MovedStore, say: Say) -> int:
    if rows := compare(table, source.connection, target.connection):
        say(f"{table.name}: {rows} rows are the same in both")
    return rows


def _samples(source: MovedStore, count: int) -> Sequence[_Sample]:
    """Choose memories by chance, the same ones of the same store."""
    # A namespace whose name begins with / is being removed.
    query = (
        "SELECT n.name, m.text FROM memories m JOIN namespaces n ON n.id = m.namespace_id "
        "WHERE m.id >= ? AND substr(n.name, 1, 1) <> '/' ORDER BY m.id LIMIT 1"
    )
    last = int(source.connection.execute("SELECT coalesce(max(id), 0) FROM memories").get)
    ids = np.random.default_rng(SEED).integers(1, last + 1, max(0, count)) if last else ()
    found = (source.connection.execute(query, (int(id_),)).fetchone() for id_ in ids)
    return [_Sample(row[0], row[1][:QUERY_CHARS]) for row in found if row is not None]


def _compare_searches(
    both: Sequence[Settings], samples: Sequence[_Sample], model_id: str, say: Say, make: MakeEmbedder | None
) -> None:
    embedder, _ = chosen_model(both[0], make)
    with closing(embedder):
        try:
            embedder.load()
        except SouvenirError as error:
            say(f"Searches were not compared, because the embedding model cannot be used: {error.message}")
            return
        if embedder.model_id != model_id:
            say(f"Searches were not compared: the vectors were made by {model_id}, and EMBED_MODEL is another model")
            return
        now = utc_now()
        one, other = (_answers(settings, _folder_of(both), embedder, samples, now) for settings in both)
    differing = [sample for sample, *answers in zip(samples, one, other, strict=True) if not is_same(*answers)]
    if differing:
        raise StoreUnusable(
            f"All rows are the same, but {len(differing)} of {len(samples)} searches have other answers, first one in "
            f"the namespace {differing[0].namespace!r}; keep the source, and report this"
        )
    say(f"{len(samples)} searches have the same answers in both")


def _folder_of(both: Sequence[Settings]) -> Path:
    return next(settings.data_dir for settings in both if settings.database_url is None)


def _answers(
    settings: Settings, folder: Path, embedder: Embedder, samples: Sequence[_Sample], now: datetime
) -> list[_Answer]:
    """:param folder: Has space for the index snapshots of a database in PostgreSQL, which are deleted."""
    with TemporaryDirectory(prefix="migration-", dir=folder) as temporary:
        if settings.database_url is not None:
            settings = settings.model_copy(update={"data_dir": Path(temporary), "db_path": None})
        with closing(MemoryEngine.open(settings, embedder)) as engine:
            results = [
                engine.search(Scope(one.namespace), SearchQuery(one.text, top_k=TOP_K, now=now)) for one in samples
            ]
    return [[(hit.memory.id, hit.score) for hit in result.hits] for result in results]


def is_same(one: _Answer, other: _Answer) -> bool:
    """Return whether two answers have the same scores, and the same ids except for ties with the last one."""
    if len(one) != len(other):
        return False
    if not all(math.isclose(a, b, abs_tol=TOLERANCE) for (_, a), (_, b) in zip(one, other, strict=True)):
        return False
    others = dict(other)
    return all(
        math.isclose(others.get(id_, -1.0), score, abs_tol=TOLERANCE) or score - one[-1][1] <= TOLERANCE
        for id_, score in one
    )
