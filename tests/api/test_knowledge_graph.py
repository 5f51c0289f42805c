"""The knowledge graph over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from souvenir.api import knowledge_graph as graph_models
from souvenir.knowledge import knowledge_graph
from tests.api.conftest import KEY, Start

ANN = {"name": "Ann_Lee", "entity_type": "person", "observations": ["Speaks Basque", "Runs"]}
ACME = {"name": "Acme", "entity_type": "company", "observations": []}
WORKS = {"from_entity": "Ann_Lee", "to_entity": "Acme", "relation_type": "works_at"}
GRAPH = {"entities": [ANN, ACME], "relations": [WORKS]}


def read(client: TestClient, **query) -> dict[str, Any]:
    answer = client.get("/knowledge-graph", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    for entity in found["entities"]:
        assert client.get(f"/memory/{entity.pop('id')}").json()["entity_key"] == entity["name"]
    return found


def store(client: TestClient, body: dict[str, Any], **headers) -> list[int]:
    answer = client.post("/knowledge-graph", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return list(answer.json().values())


def test_a_graph_is_stored_whole_and_the_same_again_changes_nothing(client: TestClient):
    assert store(client, GRAPH) == [2, 0, 2, 1]
    assert read(client) == {**GRAPH, "next_offset": None, "note": None}
    assert store(client, GRAPH) == [0, 0, 0, 0]
    more = {"entities": [{**ACME, "observations": ["Makes anvils"]}], "relations": [{**WORKS, "to_entity": "Globex"}]}
    assert store(client, more) == [0, 1, 1, 1]
    assert read(client)["entities"] == [ANN, {**ACME, "observations": ["Makes anvils"]}]


def test_entities_are_found_by_content_and_by_name(client: TestClient):
    store(client, GRAPH)
    assert [one["name"] for one in read(client, q="BASQUE")["entities"]] == ["Ann_Lee"]
    by_name = read(client, names=["Acme", "nobody"])
    assert (by_name["entities"], by_name["relations"]) == ([ACME], [WORKS])
    both = client.get("/knowledge-graph", params={"q": "a", "names": "b"})
    assert (both.status_code, both.json()["code"]) == (422, "invalid_request")


def test_a_large_graph_comes_in_parts_that_say_so(client: TestClient, monkeypatch: pytest.MonkeyPatch):
    names = [f"e{number}" for number in range(5)]
    relations = [{"from_entity": "e0", "to_entity": name, "relation_type": "knows"} for name in names]
    store(client, {"entities": [{"name": name} for name in names], "relations": relations})
    first, last = read(client, limit=3), read(client, limit=3, offset=3)
    assert [one["name"] for one in first["entities"] + last["entities"]] == names
    assert (first["next_offset"], last["next_offset"]) == (3, None)
    assert "offset 3" in first["note"]
    assert first["relations"] + last["relations"] == relations
    for module in (knowledge_graph, graph_models):
        monkeypatch.setattr(module, "MAX_RELATIONS", 2)
    assert len(read(client)["relations"]) == 2
    assert "first 2 relations" in read(client)["note"]


def test_relations_are_links_that_other_routes_show_and_leave_alone(client: TestClient):
    store(client, GRAPH)
    [ann, acme] = [one["id"] for one in client.get("/knowledge-graph").json()["entities"]]
    [link] = client.get(f"/memory/{acme}/links", params={"include_incoming": True}).json()["links"]
    assert (link["from_id"], link["type"], link["direction"]) == (ann, "relation/works_at", "incoming")
    refused = client.delete(f"/memory/{ann}/link/{acme}", params={"type": "relation/works_at"})
    assert refused.status_code == 400
    client.patch(f"/memory/{ann}", json={"metadata_patch": {"seen": True}})
    assert read(client) == {**GRAPH, "next_offset": None, "note": None}
    noted = client.get("/audit", params={"action": "relation.add"}).json()["entries"]
    assert [entry["detail"] for entry in noted] == ["1 relation"]


def test_an_export_of_memories_brings_entities_and_relations_to_another_namespace(client: TestClient):
    store(client, GRAPH)
    exported = client.get("/export").content
    headers = {"Content-Type": "application/x-ndjson", "X-Namespace": "copy"}
    assert client.post("/import", content=exported, headers=headers).status_code == 200
    copied = client.get("/knowledge-graph", headers={"X-Namespace": "copy"}).json()
    assert copied["relations"] == [WORKS]
    assert [{**one, "id": 0} for one in copied["entities"]] == [{**ANN, "id": 0}, {**ACME, "id": 0}]


def test_limited_keys_use_the_graph_of_their_sources(start: Start):
    client = start(api_key=KEY)

    def headers(**fields) -> dict[str, str]:
        made = client.post("/api/keys", json={"name": "k", **fields}, headers={"X-API-Key": KEY})
        return {"X-API-Key": made.json()["key"]}

    admin, reader = {"X-API-Key": KEY}, headers(role="read-only", prefixes=["proj"])
    writer, other = headers(role="read-write", prefixes=["proj"]), headers(role="read-write", prefixes=["other"])
    store(client, GRAPH, **admin)
    assert client.get("/knowledge-graph", headers=reader).json()["entities"] == []
    assert client.post("/knowledge-graph", json=GRAPH, headers=reader).status_code == 403
    assert store(client, GRAPH, **writer) == [2, 0, 2, 1]
    assert [one["name"] for one in client.get("/knowledge-graph", headers=reader).json()["entities"]] == [
        "Ann_Lee",
        "Acme",
    ]
    assert client.get("/knowledge-graph", headers=other).json()["entities"] == []
    assert len(client.get("/knowledge-graph", headers=admin).json()["entities"]) == 2


@pytest.mark.parametrize(
    "body",
    [
        {"entities": [{"name": ""}]},
        {"entities": [{"name": "  "}]},
        {"entities": [{"name": "a", "observations": [""]}]},
        {"relations": [{**WORKS, "relation_type": "x" * 181}]},
    ],
)
def test_an_invalid_graph_is_refused_and_nothing_is_stored(client: TestClient, body: dict[str, Any]):
    answer = client.post("/knowledge-graph", json={**GRAPH, **body})
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")
    assert client.get("/stats").json()["total_memories"] == 0
