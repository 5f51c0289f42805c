"""The cost of imports to the service and to each other: blank lines, invalid lines, turns and shares of callers."""

from __future__ import annotations

from pathlib import Path

import pytest

from souvenir.core.errors import Overloaded
from souvenir.core.types import Scope
from souvenir.store.admin.jobs import JobStatus
from souvenir.transfer import import_job
from souvenir.transfer.import_job import Strategy
from tests.transfer.stores import DEFAULT, PATIENCE_S, Store, ndjson, open_store
from tests.transfer.test_importing import line


def writes_to(store: Store, namespace: str = DEFAULT.namespace) -> int:
    with store.engine.namespace(Scope(namespace)) as (connection, _):
        return int(connection.execute("SELECT change_seq FROM namespaces WHERE name = ?", (namespace,)).get)


def test_blank_lines_are_not_written_down_but_counted(store: Store):
    blank = b"\n" * 300_000 + b" \t\r\n" * 10_000 + b" " * 20_000 + b"\n"
    body = blank + ndjson(line("first")) + blank + b"  nonsense\n" + ndjson(line("second")) + blank
    report = store.import_(body)
    assert (report["imported"], [error["line"] for error in report["errors"]]) == (2, [2 * 310_001 + 2])
    assert writes_to(store) == 1


def test_an_import_of_nothing_but_line_feeds_writes_nothing(store: Store):
    assert store.import_(b"\n" * 1024 * 1024)["imported"] == 0
    assert writes_to(store) == 0


@pytest.mark.parametrize("strategy", [Strategy.ADD, Strategy.SMART])
def test_lines_that_cannot_be_stored_cost_few_writes(store: Store, strategy: Strategy):
    report = store.import_(b"x\n" * 10_000 + ndjson(line("last")), strategy=strategy)
    assert (report["imported"], report["error_count"]) == (1, 10_000)
    assert writes_to(store) == 3


def test_imports_of_two_callers_advance_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(import_job, "BATCH_LINES", 2)
    greedy, modest = Scope("a", "key:greedy"), Scope("b", "key:modest")
    with open_store(tmp_path, start=False) as store:
        large = store.submit(ndjson(*(line(f"greedy {number}") for number in range(40))), greedy)
        small = store.submit(ndjson(*(line(f"modest {number}") for number in range(4))), modest)
        store.jobs.start()
        assert store.jobs.wait(small.id, PATIENCE_S).status is JobStatus.COMPLETED
        report = store.jobs.wait(large.id, PATIENCE_S).result
        assert report is not None
        assert (report["imported"], report["error_count"]) == (40, 0)
        with store.engine.namespace(DEFAULT) as (connection, _):
            order = connection.execute("SELECT text FROM memories ORDER BY id").fetchall()
        # Of the large import came two batches before the small one was done.
        assert order.index(("modest 3",)) == 7


def test_a_key_has_a_share_of_the_imports_that_wait(tmp_path: Path):
    with open_store(tmp_path, start=False, queue_max=100) as store:
        for number in (1, 2, 1, 2, 3, 3, 4, 4):
            store.submit(b"\n", Scope(actor=f"key:{number}"))
        with pytest.raises(Overloaded, match="8 imports wait already"):
            store.submit(b"\n", Scope(actor="key:1"))
        store.submit(b"\n", Scope(actor="key:5"))
    with open_store(tmp_path / "other", start=False, queue_max=100) as store:
        for _ in range(2):
            store.submit(b"\n", Scope(actor="key:1"))
        with pytest.raises(Overloaded, match="2 imports of this key wait already"):
            store.submit(b"\n", Scope(actor="key:1"))
