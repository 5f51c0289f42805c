"""Damaged, stale and unreadable index snapshots: every search must answer as an index built from the database does.

The service must stay ready, its check clean, and what it refused must be in its log. One kind of trial puts an older
database back under the newer snapshots and adds memories: each must be found by its own words.
"""

from __future__ import annotations

import hashlib
import math
import multiprocessing
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.faults.base_store import Answers, answers, build, fill, open_engine, queries_of
from benchmarks.faults.contents import Ledger, captured_logs, contents, searched
from benchmarks.faults.part import Outcome, Part
from souvenir.core.array_file import ALIGNMENT, MAGIC, TRAILER_BYTES, header_of
from souvenir.core.settings import Settings
from souvenir.index import registry
from souvenir.store import index_changes
from souvenir.store.index_changes import Touched
from souvenir.store.sqlite import generations, losses

INDEX = "index"
OLD, NEW = 15, 15
"""Commits of each kind in the older store, and further ones in the newer."""

ADDED = 4
"""Commits of each kind after an older database was put back."""

MISSING = "acknowledged commits are missing"
"""In what `check` says of a database that was put back."""

NOBODY = 65_534
CONTROL_TRIALS = 3
NEW_PROCESSES = multiprocessing.get_context("spawn")

Damage = Callable[[Path, random.Random], bool]
"""Damages the snapshots of a folder; returns whether the log must name something refused."""


class Stores(NamedTuple):
    """Two states of one store, and the ledger of each."""

    old: Path
    old_ledger: Ledger
    new: Path
    new_ledger: Ledger


def _built(folder: Path, seed: int) -> Stores:
    old, new = folder / "old", folder / "new"
    ledger = Ledger()
    build(old, ledger, seed, OLD)
    newer = Ledger(dict(ledger.texts), set(ledger.removed), acknowledged=ledger.acknowledged)
    shutil.copytree(old, new)
    build(new, newer, seed + 1, NEW)
    return Stores(old, ledger, new, newer)


# --- damages -----------------------------------------------------------------------------------------------------


def _files(index: Path) -> list[Path]:
    return sorted(path for path in index.iterdir() if path.is_file() and path.stat().st_size)


def _truncated(index: Path, dice: random.Random) -> bool:
    path = dice.choice(_files(index))
    os.truncate(path, dice.randrange(path.stat().st_size))
    return True


def _flipped(index: Path, dice: random.Random) -> bool:
    """Flip bytes, some of which may be padding between two arrays."""
    path = dice.choice(_files(index))
    content = bytearray(path.read_bytes())
    arrays = header_of(path)["arrays"].values()
    ends = [one["offset"] + np.dtype(one["dtype"]).itemsize * math.prod(one["shape"]) for one in arrays]
    padding = {place for end in ends for place in range(end, end + -end % ALIGNMENT)}
    changed = False
    for _ in range(dice.randint(1, 8)):
        place = dice.randrange(len(content))
        content[place] ^= dice.randint(1, 255)
        changed |= place not in padding
    changed &= content != path.read_bytes()
    path.write_bytes(content)
    return changed


def _removed(index: Path, dice: random.Random) -> bool:
    dice.choice(_files(index)).unlink()
    return False


def _swapped_snapshots(index: Path, dice: random.Random) -> bool:
    """Swap snapshots of two namespaces or kinds; their rows are then dropped."""
    _swap(*dice.sample(_files(index), 2))
    return False


def _swap(one: Path, other: Path) -> None:
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


def _partial(index: Path, dice: random.Random) -> bool:
    """Leave a partial file, as a kill does."""
    path = dice.choice(_files(index))
    content = path.read_bytes()
    path.with_name(path.name + ".partial").write_bytes(content[: dice.randrange(len(content))])
    return False


def _edited_footer(index: Path, dice: random.Random) -> bool:
    """Rename an entry of the footer, whose checksum then agrees again."""
    path = dice.choice(_files(index))
    content = path.read_bytes()
    length = int.from_bytes(content[-TRAILER_BYTES:][32:40], "little")
    arrays, footer = content[: -TRAILER_BYTES - length], content[-TRAILER_BYTES - length : -TRAILER_BYTES]
    name = dice.choice((b"generation", b"commit", b"change_seq", b"arrays", b"model_id", b"dim"))
    edited = footer.replace(b'"' + name + b'"', b'"other"')
    checksum = hashlib.sha256(edited).digest()
    path.write_bytes(arrays + edited + checksum + len(edited).to_bytes(8, "little") + MAGIC)
    return True


def _folder_in_place_of_a_file(index: Path, dice: random.Random) -> bool:
    path = dice.choice(_files(index))
    path.unlink()
    path.mkdir()
    return True


def _file_in_place_of_the_folder(index: Path, _: random.Random) -> bool:
    shutil.rmtree(index)
    index.write_bytes(b"not a folder")
    return True


DAMAGES: tuple[Damage, ...] = (
    _truncated,
    _flipped,
    _removed,
    _swapped_snapshots,
    _partial,
    _edited_footer,
    _folder_in_place_of_a_file,
    _file_in_place_of_the_folder,
)


# --- trials ------------------------------------------------------------------------------------------------------


class _Seen(NamedTuple):
    answers: Answers
    ready: bool
    problems: list[str]
    refused: bool


def _seen(data_dir: Path, queries: list[str]) -> _Seen:
    with captured_logs() as log, closing(open_engine(data_dir)) as engine:
        found, ready = answers(engine, queries), engine.readiness().ready
        problems = [problem for problem in engine.check() if MISSING not in problem]
        warned = any(warning.code.startswith(INDEX) for warning in engine.warnings.current())
    refused = any(line["event"].startswith(INDEX) for line in log)
    return _Seen(found, ready, problems, refused or warned)


def _seen_as_nobody(data_dir: Path, rehearsal: Path, queries: list[str]) -> _Seen:
    """:param rehearsal: Another store; opening it imports everything, since nobody may not read the interpreter."""
    saved = rehearsal.with_name("config.json")
    saved.write_text("{}", encoding="utf-8")
    saved.chmod(0o644)
    os.environ["CONFIG_FILE"] = str(saved)
    # The checkout may be in a folder that only its owner can enter.
    rules = saved.with_name("privacy.yaml")
    shutil.copyfile(Settings().privacy_rules_path, rules)
    rules.chmod(0o644)
    os.environ["PRIVACY_CONFIG"] = str(rules)
    os.chdir(saved.parent)
    _seen(rehearsal, queries)
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    return _seen(data_dir, queries)


def _compared(name: str, seen: _Seen, expected: Answers, *, must_log: bool) -> Outcome:
    wrong = [
        f"{name}: a search of {kind} in namespace {place} for {text!r} found {len(seen.answers[place, kind, text])} "
        f"others than an index built from the database"
        for (place, kind, text), hits in expected.items()
        if seen.answers[place, kind, text] != hits
    ]
    wrong += [f"{name}: {problem}" for problem in seen.problems]
    if not seen.ready:
        wrong.append(f"{name}: the service is not ready")
    if must_log and not seen.refused:
        wrong.append(f"{name}: nothing in the log says that a snapshot was refused")
    return Outcome(trials=1, acknowledged=len(expected), wrong=tuple(wrong))


def _damaged(stores: Stores, damage: Damage, dice: random.Random, folder: Path) -> Outcome:
    shutil.copytree(stores.new, folder)
    must_log = damage(folder / INDEX, dice)
    queries = queries_of(stores.new_ledger, dice)
    return _compared(damage.__name__, _seen(folder, queries), _rebuilt(stores.new, queries, folder), must_log=must_log)


def _rebuilt(data_dir: Path, queries: list[str], folder: Path) -> Answers:
    """Return the answers of indexes that are built from a copy of the database."""
    copy = folder.with_name(folder.name + "-rebuilt")
    shutil.copytree(data_dir, copy, ignore=shutil.ignore_patterns(INDEX))
    with captured_logs(), closing(open_engine(copy)) as engine:
        found = answers(engine, queries)
    shutil.rmtree(copy)
    return found


def _older_snapshots(stores: Stores, dice: random.Random, folder: Path) -> Outcome:
    """Put older snapshots of the same history back; they may be used, with the changes since."""
    shutil.copytree(stores.new, folder, ignore=shutil.ignore_patterns(INDEX))
    shutil.copytree(stores.old / INDEX, folder / INDEX)
    queries = queries_of(stores.new_ledger, dice)
    expected = _rebuilt(stores.new, queries, folder)
    return _compared("older snapshots", _seen(folder, queries), expected, must_log=False)


def _unreadable(stores: Stores, dice: random.Random, folder: Path) -> Outcome:
    """Take the permissions of the folder away, from a user who is not root."""
    queries = queries_of(stores.new_ledger, dice)
    expected = _rebuilt(stores.new, queries, folder)
    with _folder_of_nobody() as own:
        data_dir, rehearsal = own / "data", own / "rehearsal"
        for copy in (data_dir, rehearsal):
            shutil.copytree(stores.new, copy)
        for path in (data_dir, *data_dir.rglob("*")):
            shutil.chown(path, NOBODY, NOBODY)
        mode = dice.choice((0o000, 0o300, 0o500))
        (data_dir / INDEX).chmod(mode)
        with ProcessPoolExecutor(1, mp_context=NEW_PROCESSES) as process:
            seen = process.submit(_seen_as_nobody, data_dir, rehearsal, queries).result()
    return _compared("unreadable folder", seen, expected, must_log=not mode)


@contextmanager
def _folder_of_nobody() -> Iterator[Path]:
    """A folder that everybody can reach, in which a folder of a test might not be."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def put_back(stores: Stores, seed: int, folder: Path, *, marker: bool = True) -> Outcome:
    """Put an older database under newer snapshots, add to it, and search for each new object, also after a restart.

    :param marker: Whether the newer marker of the last commit stays, by which the loss is noticed.
    """
    dice = random.Random(seed)
    shutil.copytree(stores.old, folder, ignore=shutil.ignore_patterns(INDEX))
    shutil.copytree(stores.new / INDEX, folder / INDEX)
    name = generations.marker_path(folder / "souvenir.db").name
    if marker:
        shutil.copyfile(stores.new / name, folder / name)
    else:
        (folder / name).unlink()
    ledger = Ledger(dict(stores.old_ledger.texts), set(stores.old_ledger.removed))
    wrong: list[str] = []
    outcome = Outcome()
    with captured_logs():
        for _ in range(2):
            with closing(open_engine(folder)) as engine:
                before = set(ledger.texts)
                fill(engine, ledger, dice, ADDED)
                added = [key for key in ledger.texts.keys() - before if not key.startswith("block")]
                found = searched(engine, added)
                wrong += [f"{key} was added after a put-back and is not found" for key in added if not found[key]]
                problems = engine.check()
                wrong += [problem for problem in problems if MISSING not in problem]
                if marker and not any(MISSING in problem for problem in problems):
                    wrong.append("check does not say that commits are missing")
                outcome = ledger.compare(contents(engine))
    queries = queries_of(ledger, dice)
    seen = _seen(folder, queries)
    compared = _compared("put-back database", seen, _rebuilt(folder, queries, folder), must_log=False)
    return compared + outcome + Outcome(wrong=tuple(wrong))


def run(trials: int, seed: int, folder: Path) -> Outcome:
    with captured_logs():
        stores = _built(folder, seed)
    dice, outcome = random.Random(seed), Outcome()
    for number in range(trials):
        place, kind = folder / f"trial-{number}", number % (len(DAMAGES) + 3)
        if kind < len(DAMAGES):
            outcome += _damaged(stores, DAMAGES[kind], dice, place)
        elif kind == len(DAMAGES):
            outcome += _older_snapshots(stores, dice, place)
        elif kind == len(DAMAGES) + 1 or os.geteuid():
            outcome += put_back(stores, dice.getrandbits(32), place, marker=dice.random() < 0.5)
        else:
            outcome += _unreadable(stores, dice, place)
        shutil.rmtree(place, ignore_errors=True)
    return outcome


def control(folder: Path) -> dict[str, tuple[str, ...]]:
    """Take every snapshot for a current one of this history, and neither look for lost commits nor compare anything."""
    with ProcessPoolExecutor(1, mp_context=NEW_PROCESSES) as process:
        return {"history not compared": process.submit(_without_histories, folder).result()}


def _without_histories(folder: Path) -> tuple[str, ...]:
    with captured_logs():
        stores = _built(folder, 1)
        generations.includes = lambda connection, commit: True
        losses.find_loss = lambda connection, settings: None
        index_changes.since = lambda *_: Touched(frozenset(), frozenset())
        vars(registry)["sampled_problems"] = lambda *_: []
        vars(registry)["differing_ids"] = lambda *_: (frozenset(), frozenset())
        wrong: tuple[str, ...] = ()
        for number in range(CONTROL_TRIALS):
            found = put_back(stores, 100 + number, folder / f"trial-{number}").wrong
            wrong += tuple(sentence for sentence in found if sentence.endswith("not found"))
    return wrong


INDEXES = Part("indexes", trials=36, long_trials=300, run=run, control=control)
