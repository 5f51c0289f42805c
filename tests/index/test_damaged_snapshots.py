"""Damaged files of indexes never fail a search and never change its results, whatever the damage."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random

import pytest

from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, MemoryPatch, Scope, SearchQuery
from souvenir.memories.engine import MemoryEngine
from tests.fake_embedder import FakeTokenEmbedder
from tests.thoroughness import sampled

TRIALS = sampled(20, 60)
PARTS = 6
SCOPES = (Scope("default"), Scope("ann"))
QUERIES = ("garden plan7", "the ferry", "only in ann", "note 3", "harbour at night")
WORDS = ["garden", "ferry", "harbour", "night", "plan", "lamp", "river", "stone", "letter", "train"]

Results = list[list[tuple[int, float]]]


def open_engine(folder: Path) -> MemoryEngine:
    return MemoryEngine.open(Settings(data_dir=folder, snapshot_interval_s=3600), FakeTokenEmbedder())


def results(engine: MemoryEngine) -> Results:
    found = [engine.search(scope, SearchQuery(query, top_k=20)) for scope in SCOPES for query in QUERIES]
    assert all(one.degraded == () for one in found)
    return [[(hit.memory.id, round(hit.parts.raw_score, 5)) for hit in one.hits] for one in found]


def drafts(random: Random, name: str) -> Sequence[MemoryDraft]:
    return [
        MemoryDraft(f"note {number} only in {name}: {' '.join(random.choices(WORDS, k=8))} plan{number}", "notes")
        for number in range(60)
    ]


@dataclass(frozen=True)
class Store:
    """:param present: The files of the indexes of the present state. :param older: Those of an earlier one."""

    folder: Path
    present: Path
    older: Path
    expected: Results

    @property
    def index(self) -> Path:
        return self.folder / "index"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    folder, random = tmp_path_factory.mktemp("store"), Random(7)
    store = Store(folder, folder.parent / f"{folder.name}-present", folder.parent / f"{folder.name}-older", [])
    with closing(open_engine(folder)) as engine:
        ids = [engine.add_batch(scope, drafts(random, scope.namespace)) for scope in SCOPES]
        results(engine)
    shutil.copytree(store.index, store.older)
    with closing(open_engine(folder)) as engine:
        for scope, of_scope in zip(SCOPES, ids, strict=True):
            engine.add_batch(scope, drafts(random, f"{scope.namespace} later"))
            engine.update(scope, of_scope[3], MemoryPatch(text="the ferry leaves the harbour at night"))
            engine.update(scope, of_scope[4], MemoryPatch(archived=True))
            engine.delete(scope, of_scope[5])
        results(engine)
    shutil.copytree(store.index, store.present)
    shutil.rmtree(store.index)
    with closing(open_engine(folder)) as engine:
        store.expected.extend(results(engine))
        assert engine.check() == []
    return store


Damage = Callable[[Random, Store, Path], None]


def truncate(random: Random, _: Store, path: Path) -> None:
    os.truncate(path, random.randrange(path.stat().st_size))


def empty(_: Random, __: Store, path: Path) -> None:
    os.truncate(path, 0)


def flip_bytes(random: Random, _: Store, path: Path) -> None:
    content = bytearray(path.read_bytes())
    for place in random.choices(range(len(content)), k=random.choice([1, 1, 20])):
        content[place] ^= 1 << random.randrange(8)
    path.write_bytes(content)


def fill_with_garbage(random: Random, _: Store, path: Path) -> None:
    path.write_bytes(random.randbytes(random.randrange(1, 9_000)))


def append(random: Random, _: Store, path: Path) -> None:
    path.write_bytes(path.read_bytes() + random.randbytes(random.randrange(1, 99)))


def remove(_: Random, __: Store, path: Path) -> None:
    path.unlink()


def make_an_empty_folder(_: Random, __: Store, path: Path) -> None:
    path.unlink()
    path.mkdir()


def make_a_full_folder(_: Random, __: Store, path: Path) -> None:
    path.unlink()
    (path / "inside").mkdir(parents=True)


def make_a_link_to_itself(_: Random, __: Store, path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def swap_with_the_other_namespace(_: Random, __: Store, path: Path) -> None:
    number, suffix = path.name.split(".")
    other = next(one for one in path.parent.glob(f"*.{suffix}") if not one.name.startswith(number))
    aside = path.with_name("aside")
    path.rename(aside)
    other.rename(path)
    aside.rename(other)


def swap_all_with_the_other_namespace(random: Random, store: Store, path: Path) -> None:
    for one in sorted(path.parent.glob(f"{path.name.split('.')[0]}.*")):
        swap_with_the_other_namespace(random, store, one)


def put_an_older_one_back(_: Random, store: Store, path: Path) -> None:
    shutil.copyfile(store.older / path.name, path)


def put_all_older_ones_back(_: Random, store: Store, path: Path) -> None:
    for one in sorted(path.parent.glob(f"{path.name.split('.')[0]}.*")):
        shutil.copyfile(store.older / one.name, one)


def leave_a_partial_write(_: Random, store: Store, path: Path) -> None:
    shutil.copyfile(store.older / path.name, path.with_name(path.name + ".partial"))


DAMAGES: Sequence[Damage] = [
    truncate,
    empty,
    flip_bytes,
    flip_bytes,
    fill_with_garbage,
    append,
    remove,
    make_an_empty_folder,
    make_a_full_folder,
    make_a_link_to_itself,
    swap_with_the_other_namespace,
    swap_all_with_the_other_namespace,
    put_an_older_one_back,
    put_all_older_ones_back,
    leave_a_partial_write,
]


def damage(store: Store, random: Random, trial: int) -> list[str]:
    """Put the sound files back, and damage one or two of them; return what was done."""
    shutil.rmtree(store.index, ignore_errors=True)
    shutil.copytree(store.present, store.index)
    done = []
    for number in range(random.choice([1, 1, 2])):
        files = sorted(path for path in store.index.iterdir() if path.is_file() and path.stat().st_size)
        one = DAMAGES[trial % len(DAMAGES)] if number == 0 else random.choice(DAMAGES)
        path = random.choice(files)
        try:
            one(random, store, path)
        except (OSError, StopIteration):
            if not number:  # the second damage may meet what the first one left
                raise
        done.append(f"{one.__name__} {path.name}")
    return done


@pytest.mark.parametrize("part", range(PARTS))
def test_no_damage_of_the_files_of_an_index_changes_a_result(store: Store, part: int):
    for trial in range(part, TRIALS, PARTS):
        done = damage(store, Random(trial), trial)
        with closing(open_engine(store.folder)) as engine:
            engine.warm_up()
            assert results(engine) == store.expected, (trial, done)
            assert engine.check() == [], (trial, done)
        if trial % 5 == 0:
            # The snapshots that this start left are sound, or refused again.
            with closing(open_engine(store.folder)) as engine:
                assert results(engine) == store.expected, (trial, done, "at the next start")
