"""Ids in a file: kept, mapped to new ones, and resolved in references."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from souvenir.core.types import Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.transaction import Transaction
from tests.memories.engine.verbs import DEFAULT, add, leap, memory, stored, texts
from tests.transfer.stores import PATIENCE_S, Store, lines_of, ndjson, open_store
from tests.transfer.test_importing import AT, FIVE, line


def test_ids_are_kept_with_their_gaps_where_nothing_had_them(store: Store):
    store.import_(ndjson(line("five", id=5), line("nine", id=9)))
    assert [found.id for found in stored(store.engine)] == [5, 9]
    assert add(store.engine, "next") == 10


def test_an_id_that_was_given_out_once_is_never_given_again(store: Store):
    for _ in range(3):
        store.engine.delete(DEFAULT, add(store.engine, "gone"))
    store.import_(ndjson(line("two", id=2), line("three", id=3), line("seven", id=7), line("six", id=6)))
    assert [(found.id, found.text) for found in stored(store.engine)] == [
        (4, "two"),
        (5, "three"),
        (7, "seven"),
        (8, "six"),
    ]


def test_no_file_can_use_the_ids_up(store: Store):
    store.import_(ndjson(line("huge", id=2**63 - 1), line("zero", id=0)))
    assert [found.id for found in stored(store.engine)] == [1, 2]


@pytest.mark.parametrize("large", [10**6 + 3, 2**41, 2**45, 2**46 + 1, 2**52, 2**53, 2**63 - 1])
def test_no_line_moves_the_counter_by_a_leap(store: Store, large: int):
    report = store.import_(ndjson(line("far", id=large), line("near", id=large - 1)))
    assert [found.id for found in stored(store.engine)] == [1, 2]
    assert report["changed_id_count"] == 2
    assert report["changed_ids"] == [{"old": large - 1, "new": 2}, {"old": large, "new": 1}]
    assert add(store.engine, "next") == 3


def test_an_id_is_kept_up_to_the_greatest_gap(store: Store):
    report = store.import_(ndjson(line("a gap", id=10**6), line("a leap", id=2 * 10**6 + 1)))
    assert [found.id for found in stored(store.engine)] == [10**6, 10**6 + 1]
    assert report["changed_ids"] == [{"old": 2 * 10**6 + 1, "new": 10**6 + 1}]


def test_no_id_is_kept_above_the_greatest_that_can_be(store: Store):
    leap(store.engine, 2**40 - 1)
    store.import_(ndjson(line("the last", id=2**40), line("one more", id=2**40 + 500)))
    assert [found.id for found in stored(store.engine)] == [2**40, 2**40 + 1]


def test_the_report_maps_an_id_to_the_memory_that_a_smart_import_found(store: Store):
    held = add(store.engine, FIVE)
    report = store.smart(ndjson(line(FIVE, id=held), line(FIVE, id=70)))
    assert (report["skipped"], report["changed_id_count"]) == (2, 1)
    assert report["changed_ids"] == [{"old": 70, "new": held}]


def test_many_changed_ids_are_counted_and_the_first_thousand_named(store: Store):
    add(store.engine, "the id 1 is taken")
    report = store.import_(ndjson(*(line(f"text number {number}", id=number) for number in range(1, 1_101))))
    assert (report["changed_id_count"], len(report["changed_ids"])) == (1_100, 1_000)
    assert report["changed_ids"][0] == {"old": 1, "new": 2}


@pytest.mark.parametrize("bad", [-1, 2**63, 1.5, "one"])
def test_an_id_that_is_no_id_is_an_error_of_its_line(store: Store, bad: Any):
    links = [{"to_id": bad, "type": "related_to", "created_at": AT}]
    report = store.import_(ndjson(line("own", id=bad), line("linked", id=1, links=links), line("after", id=2)))
    assert [error["line"] for error in report["errors"]] == [1, 2]
    assert texts(store.engine) == ["after"]


def test_a_duplicate_id_in_a_file_is_an_error_of_the_second_line(store: Store):
    filler = [line(f"text number {number}") for number in range(100)]
    report = store.import_(ndjson(line("first", id=1), line("second", id=1), *filler, line("third", id=1)))
    assert [error["line"] for error in report["errors"]] == [2, 103]
    assert report["imported"] == 101


def test_a_job_of_an_earlier_release_claims_nothing(tmp_path: Path):
    """It does not name the role of its caller, and its state has a field that is gone."""
    with open_store(tmp_path, start=False) as store:
        job = store.submit(ndjson(line("kept elsewhere", id=50), line("other", history=[])))
        state = '{"phase": "memories", "last_id": 7}'
        change = "UPDATE jobs SET parameters = json_remove(parameters, '$.by_admin'), state = ?"
        store.engine.write_rows(lambda connection: connection.execute(change, (state,)))
        store.jobs.start()
        assert store.jobs.wait(job.id, PATIENCE_S).status == "completed"
        assert [found.id for found in stored(store.engine)] == [1, 2]


# --- the memories that one was merged from --------------------------------------------------------------------------


def test_a_merged_memory_never_comes_to_name_a_stranger_as_its_source(store: Store):
    stranger = add(store.engine, "not meant by the file")
    sources = {"source_memory_ids": [stranger, 7, 12]}
    store.import_(ndjson(line("seven", id=7), line("merged", id=9, custom_fields=sources)))
    for _ in range(3):
        stranger = add(store.engine, "stored later by another caller")
    assert stranger == 12
    assert memory(store.engine, 9).metadata == {"source_memory_ids": [7]}
    store.import_(ndjson(line("without an id", custom_fields=sources)))
    assert stored(store.engine)[-1].metadata == {"source_memory_ids": []}


def test_a_cancelled_import_leaves_no_memory_that_names_a_stranger_as_its_source(tmp_path: Path):
    class Cancelling(MemoryEngine):
        """Cancels the import after its first batch."""

        def write(self, scope: Scope, work: Callable[[Transaction], Any]) -> Any:
            done = super().write(scope, work)
            self.write_rows(lambda connection: connection.execute("UPDATE jobs SET cancel_requested = 1"))
            return done

    past = {"text": "x", "source": "notes", "metadata": {"source_memory_ids": [1]}}
    history = [{"action": "merge", "actor": "a", "at": AT, "after": past}]
    merged = line("merged", id=2, custom_fields={"source_memory_ids": [1]}, history=history)
    filler = [line(f"text number {number}") for number in range(100)]
    with open_store(tmp_path, start=False) as store:
        add(store.engine, "the memory 1 of another caller")
    with open_store(tmp_path, start=False, engine_class=Cancelling) as store:
        job = store.submit(ndjson(merged, *filler))
        store.jobs.start()
        assert store.jobs.wait(job.id, PATIENCE_S).status == "cancelled"
        assert stored(store.engine)[1].metadata == {"source_memory_ids": []}
        states = [entry["after"]["metadata"] for entry in lines_of(store.export(history=True))[2]["history"]]
        assert states == [{"source_memory_ids": []}] * 2
