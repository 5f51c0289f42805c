"""Answers of Hindsight's list of memories, with the fields of its client."""

from __future__ import annotations

import json
from typing import Any

import pytest

from souvenir_client import Souvenir
from souvenir_client.errors import NotImportable
from souvenir_client.importing import Kind, Missing, detect, hindsight, import_file
from tests.client.importing.files import altered, json_file, json_lines, records, skipped, usable

STORED = "2025-01-02T00:00:00.000000+00:00"


def unit(unit_id: str, text: str, **more: Any) -> dict[str, Any]:
    said = {"id": unit_id, "text": text, "context": "chat", "date": "2025-01-01", "fact_type": "world"}
    dates = {"mentioned_at": "2025-01-03T00:00:00Z", "occurred_start": "2025-01-02T00:00:00Z", "occurred_end": None}
    return {**said, **dates, "document_id": "doc", "entities": "Ann, Acme", "tags": ["work"], "proof_count": 2, **more}


UNITS = [
    unit("u1", "Ann runs Acme.", metadata={"id": "x"}, state="valid"),
    unit("u2", "Ann ran Initech.", occurred_start=None, state="invalidated", invalidation_reason="wrong"),
]
PAGE = {"items": UNITS, "total": 2, "limit": 100, "offset": 0}


@pytest.mark.parametrize("form", ["document", "pretty", "list", "lines", "pages"])
def test_every_form_gives_the_same_memories(tmp_path, form):
    path = tmp_path / "hindsight.json"
    match form:
        case "lines":
            json_lines(path, UNITS)
        case "pages":
            json_lines(path, [{**PAGE, "items": UNITS[:1]}, {**PAGE, "items": UNITS[1:], "offset": 1}])
        case "list":
            json_file(path, UNITS)
        case _:
            path.write_text(json.dumps(PAGE, indent=2 if form == "pretty" else None))
    assert detect(path) is Kind.HINDSIGHT
    found = records(Kind.HINDSIGHT, path)
    runs, ran = usable(found)
    assert (runs.text, runs.source, runs.key, runs.created_at, runs.tags) == (
        "Ann runs Acme.",
        "hindsight",
        "u1",
        STORED,
        ["work"],
    )
    assert runs.metadata == {
        "hindsight_id": "x",
        "context": "chat",
        "date": "2025-01-01",
        "fact_type": "world",
        "mentioned_at": "2025-01-03T00:00:00Z",
        "occurred_start": "2025-01-02T00:00:00Z",
        "document_id": "doc",
        "entities": ["Ann", "Acme"],
        "proof_count": 2,
        "state": "valid",
        "origin_class": "inferred",
    }
    assert (ran.created_at[:10], ran.metadata["archived"]) == ("2025-01-03", True)
    assert (skipped(found), altered(found)) == ([], [])


def test_missing_pages_and_unusable_items_are_counted(tmp_path):
    page = {"items": [unit("u1", "Ann runs Acme."), 7, unit("u3", " "), {"id": "u4"}], "total": 9}
    found = records(Kind.HINDSIGHT, json_file(tmp_path / "x.json", page), "old")
    assert [one.source for one in usable(found) if not isinstance(one, Missing)] == ["old"]
    assert skipped(found) == [
        ("line 1, memory 2", hindsight.NO_MEMORY),
        ("u3", "it has no text"),
        ("line 1, memory 4", hindsight.NO_MEMORY),
    ]
    assert found[-1] == Missing("memories", 9, 4)
    with pytest.raises(NotImportable, match="no list of memories"):
        records(Kind.HINDSIGHT, json_file(tmp_path / "x.json", 7))


def test_memories_of_hindsight_are_imported_once(service, tmp_path):
    path = json_file(tmp_path / "hindsight.json", PAGE)
    with Souvenir(service.url, namespace="of-hindsight") as client:
        first = import_file(client, path)
        again = import_file(client, path)
        listed = [one for one in client.transfer.export_memories() if "text" in one]
    assert (first.kind, first.memories.imported, first.skipped, first.missing) == (Kind.HINDSIGHT, 2, (), ())
    assert (again.imported, again.updated, again.unchanged) == (0, 0, 2)
    assert {one["key"]: (one["archived"], one["document_at"][:10], one["tags"]) for one in listed} == {
        "u1": (False, "2025-01-02", ["work"]),
        "u2": (True, "2025-01-03", ["work"]),
    }
