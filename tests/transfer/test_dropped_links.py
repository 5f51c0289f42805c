"""Links of imported files: those of other services, and those that are not made; and empty times."""

from __future__ import annotations

import pytest

from tests.memories.engine.verbs import add, memory, stored
from tests.transfer.stores import Store, ndjson
from tests.transfer.test_importing import AT, line


def test_links_that_another_service_keeps_in_metadata_are_made_or_counted(store: Store):
    links = [{"to_id": 9, "type": "related_to", "created_at": ""}, {"to_id": 70, "type": "related_to"}, "broken"]
    report = store.import_(
        ndjson(
            line("eight", id=8, custom_fields={"links": links}),
            line("nine", id=9),
            line("no id", custom_fields={"links": links}),
        )
    )
    assert (report["imported"], report["links"], report["links_dropped"]) == (3, 1, 5)
    assert [it.to_id for it in memory(store.engine, 8).links] == [9]


def test_links_of_lines_that_are_not_added_are_counted_as_dropped(store: Store):
    links = [{"to_id": 9, "type": "related_to", "created_at": AT}]
    add(store.engine, "eight", "notes", key="k")
    report = store.smart(ndjson(line("eight", id=8, key="k", links=links), line("nine", id=9)))
    assert (report["skipped"], report["imported"], report["links_dropped"]) == (1, 1, 1)
    report = store.import_(ndjson(line("other", id=80, key="k", links=links)))
    assert (report["error_count"], report["links_dropped"]) == (1, 1)


def test_links_that_a_repeated_import_finds_are_not_counted_as_dropped(store: Store):
    links = [{"to_id": 9, "type": "related_to", "created_at": AT}]
    body = ndjson(line("eight", id=8, links=links), line("nine is another number", id=9))
    assert store.smart(body)["links"] == 1
    again = store.smart(body)
    assert (again["skipped"], again["links"], again["links_dropped"]) == (2, 0, 0)


@pytest.mark.parametrize("name", ["created_at", "updated_at", "document_at", "valid_to"])
def test_an_empty_time_is_a_missing_one(store: Store, name: str):
    assert store.import_(ndjson({"text": "x", "source": "s", name: ""}))["imported"] == 1
    report = store.import_(ndjson({"text": "y", "source": "s", "custom_fields": {"document_at": ""}}))
    assert (report["imported"], report["errors"]) == (1, [])
    assert {one.document_at for one in stored(store.engine)} == {None}
