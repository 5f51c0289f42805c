"""The knowledge graph over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

from souvenir.api import knowledge_graph as graph_models
from souvenir.knowledge import knowledge_graph
from souvenir.transfer import import_job
from tests.api.conftest import KEY, Start, indexed
from tests.api.test_agents import ENV, key_for

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
    names = ["e3", "e1", "e4", "e0", "e2"]
    relations = [{"from_entity": "e3", "to_entity": name, "relation_type": "knows"} for name in names]
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
    admin, reader = ENV, key_for(client, role="read-only", prefixes=["proj"])
    writer, other = key_for(client, prefixes=["proj"]), key_for(client, prefixes=["other"])
    store(client, GRAPH, **admin)
    assert client.get("/knowledge-graph", headers=reader).json()["entities"] == []
    assert client.post("/knowledge-graph", json=GRAPH, headers=reader).status_code == 403
    assert store(client, GRAPH, **writer) == [2, 0, 2, 1]
    names = [one["name"] for one in client.get("/knowledge-graph", headers=reader).json()["entities"]]
    assert names == ["Ann_Lee", "Acme"]
    assert client.get("/knowledge-graph", headers=other).json()["entities"] == []
    assert len(client.get("/knowledge-graph", headers=admin).json()["entities"]) == 2


def of_agent(client: TestClient, name: str = "ann", **headers: str) -> dict[str, str]:
    """Create an agent, and name its namespace."""
    assert client.post("/agents", json={"name": name}, headers=headers).status_code == 200
    return {**headers, "X-Namespace": name}


def test_entities_are_concepts_that_the_routes_of_an_agent_show(client: TestClient):
    store(client, GRAPH, **of_agent(client))
    indexed(client)
    found = client.get("/agents/ann/concept", params={"name": "ann lee"}).json()
    assert (found["kind"], found["name"], found["aliases"], found["mentions"]) == ("person", "Ann Lee", ["Ann_Lee"], 1)
    [memory] = found["memories"]
    path = f"/agents/ann/concepts/{found['id']}/relations"
    [relation] = client.get(path).json()["relations"]
    assert (relation["type"], relation["other"], relation["made_by"]) == ("works_at", "Acme", "caller")
    assert (relation["memory_id"], relation["message_id"]) == (memory["id"], None)
    near = client.get(f"/agents/ann/concepts/{relation['other_id']}/related", params={"depth": 1}).json()
    [step] = [(one["concept"]["id"], one["relationship_type"], one["outgoing"]) for one in near["related"]]
    assert step == (found["id"], "works_at", False)
    assert client.delete(path, params={"to": relation["other_id"], "type": "works_at"}).status_code == 200
    assert client.get("/knowledge-graph", headers={"X-Namespace": "ann"}).json()["relations"] == []


@pytest.mark.parametrize("name", ["Ann_Lee", "\u674e\u96f7", "ann lee"])
def test_entities_are_found_by_their_concept(client: TestClient, name: str):
    headers = of_agent(client)
    store(client, {"entities": [{"name": name, "entity_type": "person", "observations": ["Runs"]}, ACME]}, **headers)
    indexed(client)
    answer = client.post("/agents/ann/search", json={"query": f"what about {name} ?", "strategy": "concept"}).json()
    assert [one["memory"]["text"].splitlines()[-1] for one in answer["results"]] == ["Runs"]


def test_imported_entities_are_concepts_with_their_relations(client: TestClient, monkeypatch: pytest.MonkeyPatch):
    """Also if they are indexed between the two passes of an import, of which the second makes the links."""
    second_pass = import_job._Run.make_links

    def make_links(run: import_job._Run) -> None:
        indexed(client)
        second_pass(run)

    monkeypatch.setattr(import_job._Run, "make_links", make_links)
    store(client, GRAPH, **of_agent(client))
    exported = client.get("/export", headers={"X-Namespace": "ann"}).content
    headers = {**of_agent(client, "copy"), "Content-Type": "application/x-ndjson"}
    assert client.post("/import", content=exported, headers=headers).status_code == 200
    indexed(client)
    found = client.get("/agents/copy/concept", params={"name": "acme"}).json()
    relations = client.get(f"/agents/copy/concepts/{found['id']}/relations").json()["relations"]
    assert [(one["concept"], one["type"]) for one in relations] == [("Ann Lee", "works_at")]


def test_limited_keys_see_no_concepts_of_other_sources(start: Start):
    client = start(api_key=KEY)
    admin = of_agent(client, **ENV)
    store(client, GRAPH, **admin)
    limited = key_for(client, namespace="ann", prefixes=["proj"])
    theirs = {"entities": [{"name": "Zoe", "entity_type": "cat", "observations": ["Sleeps"]}, ACME], "relations": []}
    store(client, theirs, **limited)
    indexed(client)
    concept = client.get("/agents/ann/concept", params={"name": "acme"}, headers=admin).json()
    of_acme = f"concepts/{concept['id']}"
    refused: list[tuple[str, str, Any]] = [
        *(("GET", path, None) for path in ("concepts", "concept?name=acme", "graph", "summary", "insights")),
        *(("GET", f"{of_acme}{rest}", None) for rest in ("", "/related", "/relations")),
        ("POST", "search", {"query": "acme", "strategy": "concept"}),
        ("POST", "graph", {"concepts": [{"key": "acme", "kind": "shop"}]}),
        ("DELETE", f"{of_acme}/relations?to=1&type=owns", None),
    ]
    for method, path, sent in refused:
        answer = client.request(method, f"/agents/ann/{path}", json=sent, headers=limited)
        assert (answer.status_code, answer.json()["code"]) == (403, "forbidden"), path
    graph = client.get("/knowledge-graph", headers=limited)
    assert [one["name"] for one in graph.json()["entities"]] == ["Zoe", "Acme"]
    assert graph.json()["relations"] == []
    found = client.get("/knowledge-graph", params={"q": "works_at Ann person"}, headers=limited).json()
    assert "Ann_Lee" not in str(found)
    seen = client.get("/agents/ann/concept", params={"name": "zoe"}, headers=admin).json()
    assert (seen["kind"], seen["mentions"]) == ("cat", 1)


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
