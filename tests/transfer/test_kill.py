"""An import whose process is killed repeatedly stores each line and each link once."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from souvenir.transfer.import_job import Strategy
from tests.killing import lines_until_killed
from tests.memories.engine.verbs import add
from tests.thoroughness import sampled
from tests.transfer.stores import PATIENCE_S, Store, lines_of, ndjson, open_store

PROCESS = "tests.transfer.importing_process"
ROUNDS = sampled(1, 4)
LINES = 800
AT = "2023-05-08T09:30:00+00:00"


def body() -> bytes:
    """Every memory is linked to the one before; every hundredth line is bad. Ids begin below those that are taken."""
    lines, words = [], random.Random(1)
    for number in range(1, LINES + 1):
        links = [{"to_id": number - 1, "type": "related_to", "created_at": AT}]
        good = {
            "text": " ".join(f"{words.getrandbits(40):x}" for _ in range(4)),
            "source": "kill",
            "created_at": AT,
            "id": number,
            "links": links,
        }
        lines.append(good if number % 100 else {"source": "kill"})
    return ndjson(*lines)


@pytest.mark.parametrize(
    ("strategy", "writes"), [(Strategy.ADD, range(2, 5)), (Strategy.SMART, range(80, 200))], ids=["add", "smart"]
)
def test_an_import_that_is_killed_again_and_again_loses_and_doubles_nothing(
    tmp_path: Path, strategy: Strategy, writes: range
):
    expected, lines = uninterrupted(tmp_path / "expected", strategy)
    chance, held = random.Random(8900), 1
    with open_store(tmp_path / "killed", start=False) as store:
        job_id = begin(store, strategy)
    for _ in range(ROUNDS):
        now_held = int(lines_until_killed(PROCESS, tmp_path / "killed", lines=chance.choice(writes))[-1])
        assert held < now_held <= LINES
        held = now_held
    with open_store(tmp_path / "killed", start=False) as store:
        store.engine.warm_up()
        store.jobs.start()
        report = store.jobs.wait(job_id, PATIENCE_S).result
        assert report is not None
        assert {**report, "backup": None} == {**expected, "backup": None}
        assert memory_lines(store) == lines
        assert len(store.engine.backups()) == 1
        assert list(store.engine.check()) == []
        store.jobs.close()
        assert list(store.spools.path(job_id).parent.iterdir()) == []


def begin(store: Store, strategy: Strategy) -> str:
    add(store.engine, "here before", "notes")
    return store.submit(body(), strategy=strategy, back_up=True).id


def memory_lines(store: Store) -> list[dict[str, Any]]:
    """All but what was there before."""
    return lines_of(store.export())[2:]


def uninterrupted(data_dir: Path, strategy: Strategy) -> tuple[Mapping[str, Any], list[dict[str, Any]]]:
    """The report and the memories of the same import when nobody kills it."""
    with open_store(data_dir) as store:
        report = store.jobs.wait(begin(store, strategy), PATIENCE_S).result
        assert report is not None
        assert report["imported"] + report["skipped"] + report["error_count"] == LINES
        assert report["error_count"] == LINES // 100
        assert report["links"] > LINES * 0.9
        return report, memory_lines(store)
