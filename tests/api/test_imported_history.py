"""Ids, actors and authors that an import may claim for each role, and how history shows them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from starlette.testclient import TestClient

from tests.api.conftest import KEY, Start
from tests.api.operations import DOCUMENT, OPERATIONS, Operation
from tests.api.test_transfer import exported, imported
from tests.cases import for_all
from tests.transfer.stores import ndjson

VICTIM = "key:6f1c7c1e-2f0b-4c57-9d6a-0a4bb6f6a1d2"
AT = "2023-05-08T09:30:00.000000+00:00"
STATE = {"text": "x", "source": "notes", "metadata": {}}
FORGED = {"action": "update", "actor": VICTIM, "at": AT, "before": None, "after": STATE}


def line(text: str, **fields: Any) -> dict[str, Any]:
    return {"text": text, "source": "notes", "created_at": AT, "updated_at": AT, **fields}


@pytest.fixture
def admin(start: Start) -> TestClient:
    client = start(api_key=KEY)
    client.headers.update({"X-API-Key": KEY})
    return client


@pytest.fixture
def writer(admin: TestClient) -> dict[str, str]:
    """A read-write key of the whole namespace."""
    made = admin.post("/api/keys", json={"name": "writer", "role": "read-write", "namespace": "default"})
    assert made.status_code == 200, made.text
    return {"X-API-Key": made.json()["key"], "id": made.json()["id"]}


def audit(client: TestClient, **query: Any) -> list[dict[str, Any]]:
    entries: list[dict[str, Any]] = client.get("/audit", params={"limit": 500, **query}).json()["entries"]
    return entries


@pytest.mark.parametrize("strategy", ["add", "smart"])
def test_a_read_write_key_of_a_whole_namespace_imports_no_history(admin: TestClient, writer, strategy: str):
    report = imported(admin, ndjson(line("forged", history=[FORGED])), writer, strategy=strategy)
    assert (report["imported"], report["errors"][0]["line"]) == (0, 1)
    assert "admin" in report["errors"][0]["error"]
    assert VICTIM not in admin.get("/audit", params={"limit": 500}).text


def test_a_read_write_key_of_a_whole_namespace_keeps_no_ids_and_the_report_maps_them(admin: TestClient, writer):
    links = [{"to_id": 50, "type": "related_to", "created_at": AT}]
    report = imported(admin, ndjson(line("fifty", id=50), line("sixty", id=60, links=links)), writer)
    ids = [one["id"] for one in exported(admin)[1:]]
    assert ids == [1, 2]
    assert (report["changed_id_count"], report["links"]) == (2, 1)
    assert report["changed_ids"] == [{"old": 50, "new": 1}, {"old": 60, "new": 2}]


def test_a_line_without_history_shows_the_import_as_the_act_of_its_key(admin: TestClient, writer):
    imported(admin, ndjson(line("one", history=[])), writer)
    [change] = admin.get("/memory/1/history").json()["changes"]
    assert (change["action"], change["actor"], change["imported"]) == ("import", f"key:{writer['id']}", False)
    assert change["at"] > AT


def test_imported_history_is_marked_and_not_attributed_to_the_named_key(admin: TestClient):
    imported(admin, ndjson(line("one", history=[FORGED])))
    changes = admin.get("/memory/1/history").json()["changes"]
    shown = [(one["action"], one["actor"], one["imported"]) for one in changes]
    assert shown == [("update", VICTIM, True), ("import", "api-key", False)]
    entries = [one for one in audit(admin, resource_id="1") if one["action"].startswith("memory.")]
    shown = [(one["action"], one["actor"], one["imported"]) for one in entries]
    assert shown == [("memory.import", "api-key", False), ("memory.update", VICTIM, True)]
    for named in (VICTIM, VICTIM.removeprefix("key:")):
        assert audit(admin, key_id=named) == []
    [left] = exported(admin, history=True)[1:]
    assert [entry["imported"] for entry in left["history"]] == [True, False]


def test_no_file_takes_the_mark_from_an_imported_history(admin: TestClient):
    imported(admin, ndjson(line("one", history=[{**FORGED, "imported": False, "job_id": "of another"}])))
    [brought, _] = admin.get("/memory/1/history").json()["changes"]
    assert (brought["imported"], brought["job_id"]) == (True, None)
    imported(admin, ndjson(*exported(admin, history=True)), {"X-Namespace": "copy", "X-API-Key": KEY})
    changes = admin.get("/memory/2/history", headers={"X-Namespace": "copy"}).json()["changes"]
    assert [one["imported"] for one in changes] == [True, True, False]


def test_an_imported_history_of_the_future_is_one_of_now(admin: TestClient):
    imported(admin, ndjson(line("one", history=[{**FORGED, "at": "9999-01-01T00:00:00Z"}])))
    brought, own = admin.get("/memory/1/history").json()["changes"]
    assert brought["at"] == own["at"] < "9999"
    assert audit(admin)[0]["at"] < "9999"
    assert admin.get("/memories", params={"as_of": own["at"]}).json()["total"] == 1


def test_only_an_admin_imports_who_made_a_memory(admin: TestClient, writer):
    author = {"auth_key_id": VICTIM, "trusted_authorship": True}
    forged = {"author": author, "contributors": [author], "promotion": {"by": VICTIM}, "kept": 1}
    for headers, source in ((writer, "written"), ({"X-API-Key": KEY}, "administered")):
        imported(admin, ndjson({"text": source, "source": source, "custom_fields": forged}), headers)
    written, administered = (one["custom_fields"] for one in exported(admin)[1:])
    assert written == {"kept": 1, "author": "writer"}
    assert administered == forged


def test_a_smart_import_with_a_read_write_key_adds_its_principal_only(admin: TestClient, writer):
    forged = {"author": {"auth_key_id": VICTIM}}
    body = {"text": "the plan is A", "source": "notes", "key": "plan", "custom_fields": {"kept": 1}}
    imported(admin, ndjson(body))
    changed = {**body, "text": "the plan is B", "custom_fields": forged}
    assert imported(admin, ndjson(changed), writer, strategy="smart")["updated"] == 1
    assert [one["custom_fields"] for one in exported(admin)[1:]] == [{"kept": 1, "contributors": ["writer"]}]


def test_a_read_write_key_imports_only_links_that_callers_can_make(admin: TestClient, writer):
    types = ("related_to", "conflicts_with", "anything")
    links = [{"to_id": 1, "type": one, "created_at": AT} for one in types]
    body = ndjson(line("one", id=1), line("two", id=2, links=links))
    report = imported(admin, body, writer)
    assert (report["links"], report["links_dropped"]) == (1, 2)
    assert imported(admin, body)["links"] == 3
    assert [link["type"] for one in exported(admin)[1:] for link in one["links"]] == [
        "related_to",
        *sorted(types),
    ]


FORGEABLE = {"actor", "author", "created_by", "history", "id", "imported", "made_by", "position", "uid", "version"}
"""Names under which a body could bring an id of its own, or say who did something."""


@for_all("operation", OPERATIONS)
def test_no_json_body_brings_an_id_or_an_actor(operation: Operation):
    content = operation.description.get("requestBody", {}).get("content", {})
    schemas = [content["application/json"]["schema"]] if "application/json" in content else []
    assert not FORGEABLE & {name for schema in schemas for name in names_in(schema, frozenset())}


def names_in(schema: dict[str, Any], above: frozenset[str]) -> Iterator[str]:
    """The names of all properties of a schema, at any depth."""
    if (ref := schema.get("$ref", "").rpartition("/")[2]) and ref not in above:
        yield from names_in(DOCUMENT["components"]["schemas"][ref], above | {ref})
    for name, held in schema.get("properties", {}).items():
        yield name
        yield from names_in(held, above)
    inner = [schema.get("items"), *(one for key in ("anyOf", "oneOf", "allOf") for one in schema.get(key, ()))]
    for one in inner:
        if isinstance(one, dict):
            yield from names_in(one, above)
