"""Bodies are parsed strictly: other JSON types are refused for booleans and integers in every operation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from starlette.testclient import TestClient

from tests.api.conftest import Add
from tests.api.operations import DOCUMENT, OPERATIONS, Operation, schema_named
from tests.cases import for_all

LooseBody = tuple[Operation, str, Any]
LOOSE: dict[str, tuple[Any, ...]] = {"boolean": (0, 1, "true", "false", 1.0), "integer": ("5", 1.0, True)}


def types_of(schema: dict[str, Any]) -> set[str]:
    return {str(one.get("type")) for one in (schema, *schema.get("anyOf", ()))}


def loose_bodies() -> Iterator[LooseBody]:
    """The example of each operation with one field of another type; a field that also takes that type is left out."""
    for operation in OPERATIONS:
        content = operation.description.get("requestBody", {}).get("content", {}).get("application/json")
        properties = schema_named(DOCUMENT, content["schema"]).get("properties", {}) if content else {}
        for name, schema in properties.items():
            for type_ in types_of(schema) & LOOSE.keys():
                for value in LOOSE[type_]:
                    if not types_of(schema) & {"string", "number"}:
                        yield operation, name, value


BODIES = list(loose_bodies())


@for_all("loose", BODIES)
def test_a_body_with_a_value_of_another_type_is_422(shared_client: TestClient, loose: LooseBody):
    operation, name, value = loose
    body = {**operation.body, name: value}
    answer = shared_client.request(operation.method, operation.path, json=body, params=operation.query)
    assert answer.status_code == 422, answer.text
    assert name in [one["loc"][1] for one in answer.json()["detail"]]


def test_most_operations_with_a_body_are_among_them():
    assert len({str(operation) for operation, _, _ in BODIES}) > 25
    assert {name for _, name, _ in BODIES} >= {"dry_run", "k", "limit", "confirm"}


def test_a_dry_run_that_is_no_boolean_deletes_nothing(client: TestClient, add: Add):
    add("Alice lives in Boston.", source="notes")
    body = {"source_pattern": "notes", "dry_run": 0}
    assert client.post("/memory/delete-by-source", json=body).status_code == 422
    assert client.get("/memories/count").json() == {"count": 1}


def test_an_integer_is_a_number_and_a_query_parameter_is_a_string(client: TestClient, add: Add):
    add("Alice lives in Boston.")
    assert client.post("/search", json={"query": "Boston", "threshold": 0}).status_code == 200
    assert client.get("/memories?limit=5&pinned=false").status_code == 200


def test_a_line_of_an_import_is_read_as_strictly(client: TestClient):
    line = '{"text": "Alice lives in Boston.", "source": "notes", "pinned": 1}'
    answer = client.post("/import", content=line, headers={"Content-Type": "application/x-ndjson"})
    assert (answer.status_code, answer.json()["imported"]) == (200, 0), answer.text
