"""Damaged databases and write-ahead logs: nothing acknowledged may be lost, changed or brought back in silence.

Either the service refuses to open, with a sentence that names the next command, and following it works; or it opens,
serves the rest, and says what is missing in its warnings and by `check`. What reads back otherwise than it was written
is said by `check`.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import re
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import apsw

from benchmarks.faults.base_store import answers, build, fill, open_engine, queries_of
from benchmarks.faults.contents import Ledger, captured_logs, contents
from benchmarks.faults.part import Outcome, Part
from souvenir.core.errors import SouvenirError, StoreUnusable
from souvenir.core.settings import Settings
from souvenir.store import check
from souvenir.store.sqlite import losses
from souvenir.store.sqlite.restore import restore_offline

DATABASE, LOG = "souvenir.db", "souvenir.db-wal"
CLOSED, OPEN = 12, 4
"""Commits of each kind before the store was closed, and after it was opened again."""

LOG_HEADER, FRAME_HEADER = 32, 24
PAGE = 4_096
CONTROL_TRIALS = 12
COMMAND = re.compile(r"`python app\.py restore (\S+)`")
NEW_PROCESSES = multiprocessing.get_context("spawn")

Damage = Callable[[Path, random.Random], None]


class Stores(NamedTuple):
    """A closed store, and the copy of one that runs, whose last commits are in its log only; both have a backup.

    :param backed_up: The ledger of the backup.
    """

    closed: Path
    running: Path
    ledger: Ledger
    running_ledger: Ledger
    backed_up: Ledger


def _built(folder: Path, seed: int) -> Stores:
    closed, running, origin = folder / "closed", folder / "running", folder / "origin"
    ledger = Ledger()
    build(origin, ledger, seed, CLOSED)
    with closing(open_engine(origin)) as engine:
        engine.back_up(reason="manual")
        backed_up = _copy(ledger)
        fill(engine, ledger, random.Random(seed + 1), 2)
    shutil.copytree(origin, closed)
    later = _copy(ledger)
    with closing(open_engine(origin)) as engine:
        fill(engine, later, random.Random(seed + 2), OPEN)
        shutil.copytree(origin, running, ignore=shutil.ignore_patterns("*-shm"))
    return Stores(closed, running, ledger, later, backed_up)


def _copy(ledger: Ledger) -> Ledger:
    return replace(ledger, texts=dict(ledger.texts), removed=set(ledger.removed))


# --- damages of the log ------------------------------------------------------------------------------------------


def _log_cut(folder: Path, dice: random.Random) -> None:
    """Cut the log at the end of a frame, or anywhere."""
    frame, size = PAGE + FRAME_HEADER, (folder / LOG).stat().st_size
    at_frame = LOG_HEADER + frame * dice.randrange(size // frame)
    os.truncate(folder / LOG, dice.choice((at_frame, dice.randrange(size))))


def _log_flipped(folder: Path, dice: random.Random) -> None:
    _flip(folder / LOG, dice, dice.randint(1, 6))


def _log_overwritten(folder: Path, dice: random.Random) -> None:
    size = (folder / LOG).stat().st_size
    _overwrite(folder / LOG, dice.randrange(size), dice.choice((64, PAGE, 8 * PAGE)), dice)


def _log_removed(folder: Path, _: random.Random) -> None:
    (folder / LOG).unlink()


# --- damages of the database -------------------------------------------------------------------------------------


def _cut(folder: Path, dice: random.Random) -> None:
    size = (folder / DATABASE).stat().st_size
    os.truncate(folder / DATABASE, dice.choice((0, PAGE * dice.randrange(size // PAGE), dice.randrange(size))))


def _removed(folder: Path, _: random.Random) -> None:
    (folder / DATABASE).unlink()


def _page_overwritten(folder: Path, dice: random.Random) -> None:
    pages = (folder / DATABASE).stat().st_size // PAGE
    for _ in range(dice.randint(1, 3)):
        _overwrite(folder / DATABASE, PAGE * dice.randrange(pages), PAGE, dice)


def _bit_flipped(folder: Path, dice: random.Random) -> None:
    _flip(folder / DATABASE, dice, 1)


def _bit_of_a_text_flipped(folder: Path, dice: random.Random) -> None:
    """Flip a bit in the words of a stored text, where no structure of the file shows it."""
    content = bytearray((folder / DATABASE).read_bytes())
    kind = dice.choice((rb"block", rb"block", rb"memory", rb"message"))
    found = [text.end() for text in re.finditer(kind + rb"[0-9][0-9a-f]{10}x version", content)]
    content[dice.choice(found) + dice.randrange(8)] ^= 1 << dice.randrange(3)
    (folder / DATABASE).write_bytes(content)


def _row_undecodable(folder: Path, dice: random.Random) -> None:
    """Give a row a value that cannot be decoded, behind the back of the triggers."""
    table, column, value = dice.choice(
        (
            ("memories", "metadata", "'{broken'"),
            ("memories", "text", "CAST(x'ff41ff' AS TEXT)"),
            ("memories", "created_at", "9223372036854775807"),
            ("messages", "content", "CAST(x'ff41ff' AS TEXT)"),
            ("passages", "text", "CAST(x'ff41ff' AS TEXT)"),
            ("vectors", "vector", "x'0102'"),
        )
    )
    with closing(apsw.Connection(str(folder / DATABASE))) as connection:
        triggers = list(connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"))
        connection.pragma("ignore_check_constraints", True)
        for name, _ in triggers:
            connection.execute(f'DROP TRIGGER "{name}"')
        rows = [row[0] for row in connection.execute(f"SELECT rowid FROM {table}")]
        connection.execute(f"UPDATE {table} SET {column} = {value} WHERE rowid = ?", (dice.choice(rows),))
        for _, sql in triggers:
            connection.execute(sql)


def _flip(path: Path, dice: random.Random, bits: int) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(bits):
        content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    path.write_bytes(content)


def _overwrite(path: Path, begin: int, length: int, dice: random.Random) -> None:
    content = bytearray(path.read_bytes())
    length = min(length, len(content) - begin)
    content[begin : begin + length] = dice.choice((bytes(length), b"\xff" * length, dice.randbytes(length)))
    path.write_bytes(content)


OF_LOGS: tuple[Damage, ...] = (_log_cut, _log_flipped, _log_overwritten, _log_removed)
OF_DATABASES: tuple[Damage, ...] = (
    _cut,
    _removed,
    _page_overwritten,
    _bit_flipped,
    _bit_of_a_text_flipped,
    _row_undecodable,
)


# --- trials ------------------------------------------------------------------------------------------------------


def _damaged(stores: Stores, damage: Damage, dice: random.Random, folder: Path) -> Outcome:
    of_log = damage in OF_LOGS
    ledger = stores.running_ledger if of_log else stores.ledger
    shutil.copytree(stores.running if of_log else stores.closed, folder)
    damage(folder, dice)
    name = damage.__name__.strip("_")
    with captured_logs() as log:
        try:
            engine = open_engine(folder)
        except StoreUnusable as error:
            return _followed(folder, error.message, stores.backed_up, name)
        with closing(engine):
            try:
                outcome = ledger.compare(contents(engine))
                answers(engine, queries_of(ledger, dice))
            except Exception as error:  # noqa: BLE001 - in the service, this is the answer 500 or 503
                return Outcome(trials=1, wrong=(f"{name}: it opens and a read fails: {error!r}",))
            warnings, problems = engine.warnings.current(), list(engine.check())
    loud = any(line["log_level"] in ("warning", "error") for line in log)
    is_missing = bool(outcome.doubled or outcome.risen) or any("is missing" in sentence for sentence in outcome.lost)
    silent = [
        *(["`check` says nothing"] if not problems else []),
        *(["no warning says it"] if is_missing and not warnings else []),
        *(["the log says nothing"] if is_missing and not loud else []),
    ]
    if not outcome.faults or not silent:
        return Outcome(trials=1, acknowledged=outcome.acknowledged)
    return _named(replace(outcome, trials=1), f"{name}, {' and '.join(silent)}")


def _followed(folder: Path, refusal: str, backed_up: Ledger, name: str) -> Outcome:
    """Run the command of a refusal; the store must then open with what the backup has."""
    command = COMMAND.search(refusal)
    if command is None:
        return Outcome(trials=1, wrong=(f"{name}: the refusal names no command: {refusal}",))
    try:
        restore_offline(Settings(data_dir=folder), command[1])
        with closing(open_engine(folder)) as engine:
            outcome = backed_up.compare(contents(engine))
            problems = engine.check()
    except SouvenirError as error:
        return Outcome(trials=1, wrong=(f"{name}: `restore` of the refusal failed: {error.message}",))
    wrong = tuple(f"{name}, after `restore`: {problem}" for problem in problems)
    return _named(replace(outcome, trials=1, wrong=wrong), f"{name}, after `restore`")


def _named(outcome: Outcome, where: str) -> Outcome:
    lost, doubled, risen = (
        tuple(f"{where}: {sentence}" for sentence in sentences)
        for sentences in (outcome.lost, outcome.doubled, outcome.risen)
    )
    return replace(outcome, lost=lost, doubled=doubled, risen=risen)


def play(trials: int, seed: int, folder: Path, damages: Sequence[Damage]) -> Outcome:
    with captured_logs():
        stores = _built(folder, seed)
    dice, outcome = random.Random(seed), Outcome()
    for number in range(trials):
        place = folder / f"trial-{number}"
        outcome += _damaged(stores, damages[number % len(damages)], dice, place)
        shutil.rmtree(place)
    return outcome


def run(trials: int, seed: int, folder: Path) -> Outcome:
    return play(trials, seed, folder, (*OF_LOGS, *OF_DATABASES))


def control(folder: Path) -> dict[str, tuple[str, ...]]:
    """Do not look for lost commits, and do not compare checksums."""
    with ProcessPoolExecutor(1, mp_context=NEW_PROCESSES, max_tasks_per_child=1) as process:
        return {
            "no marker": process.submit(_without_marker, folder / "marker").result(),
            "no checksums": process.submit(_without_checksums, folder / "checksums").result(),
        }


def _without_marker(folder: Path) -> tuple[str, ...]:
    losses.find_loss = lambda connection, settings: None
    return play(CONTROL_TRIALS, 1, folder, OF_LOGS).faults


def _without_checksums(folder: Path) -> tuple[str, ...]:
    vars(check)["COVERED"] = ()
    return play(CONTROL_TRIALS, 1, folder, (_bit_of_a_text_flipped,)).faults


DATABASES = Part("databases", trials=40, long_trials=100, run=run, control=control)
