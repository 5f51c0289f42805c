"""Graphs of Graphiti, and answers of Zep, with the fields of their models."""

from __future__ import annotations

import json
from typing import Any

import pytest

from souvenir_client import Souvenir
from souvenir_client.errors import NotImportable
from souvenir_client.importing import Conversation, Kind, MemoryRecord, Skipped, detect, graphiti, import_file
from souvenir_client.importing.records import ImportedEntity, ImportedRelation
from tests.client.importing.files import altered, json_file, json_lines, records, skipped, usable

AT = "2025-01-02T03:04:05Z"
STORED = "2025-01-02T03:04:05.000000+00:00"


def node(uuid: str, name: str, summary: str = "", **more: Any) -> dict[str, Any]:
    said = {"uuid": uuid, "name": name, "group_id": "team", "labels": ["Entity", "Person"], "created_at": AT}
    return {**said, "name_embedding": None, "summary": summary, "attributes": {}, **more}


def edge(uuid: str, fact: str, **more: Any) -> dict[str, Any]:
    ends = {"source_node_uuid": "n1", "target_node_uuid": "n2"}
    times = {"created_at": "2025-05-05T00:00:00Z", "valid_at": AT, "invalid_at": None, "expired_at": None}
    said = {"uuid": uuid, "group_id": "team", **ends, **times, "name": "WORKS_AT", "fact": fact}
    return {**said, "fact_embedding": [0.1] * 8, "episodes": ["e1"], "attributes": {"role": "boss"}, **more}


def episode(uuid: str, content: str, **more: Any) -> dict[str, Any]:
    said = {"uuid": uuid, "name": "chat", "group_id": "team", "labels": [], "created_at": AT, "source": "text"}
    return {**said, "source_description": "wiki", "content": content, "valid_at": AT, "entity_edges": [], **more}


NODES = [node("n1", "Ann", "Ann runs Acme."), node("n2", "Acme", labels=["Entity"])]
EDGES = [
    edge("d1", "Ann works at Acme."),
    edge("d2", "Ann worked at Initech.", invalid_at="2024-01-01T00:00:00Z", expired_at=AT, name="WORKED_AT"),
]
EPISODES = [
    episode("e2", "assistant: Noted.", source="message", valid_at="2025-01-02T03:04:06Z"),
    episode("e1", "Ann(user): I run Acme.", source="message"),
    episode("e3", "Acme makes ropes.", episode_metadata={"page": 3}),
]
GRAPH = {"nodes": NODES, "edges": EDGES, "episodes": EPISODES}


@pytest.mark.parametrize("form", ["document", "pretty", "entities", "list", "lines", "pages"])
def test_every_form_gives_the_same_records(tmp_path, form):
    path = tmp_path / "graph.json"
    match form:
        case "lines":
            json_lines(path, [*NODES, *EDGES, *EPISODES])
        case "pages":
            json_lines(path, [{"items": NODES, "next_cursor": "x"}, {"edges": EDGES}, {"items": EPISODES}])
        case "list":
            json_file(path, [*EPISODES, *EDGES, *NODES])
        case "entities":
            json_file(path, {"entities": NODES, "edges": EDGES, "episodes": EPISODES})
        case _:
            path.write_text(json.dumps(GRAPH, indent=2 if form == "pretty" else None))
    assert detect(path) is Kind.GRAPHITI
    found = records(Kind.GRAPHITI, path)
    assert [one for one in usable(found) if isinstance(one, ImportedEntity | ImportedRelation)] == [
        ImportedEntity("Ann", "Person", ["Ann runs Acme."], "n1"),
        ImportedEntity("Acme", "", [], "n2"),
        ImportedRelation("Ann", "Acme", "WORKS_AT", "d1"),
    ]
    works, worked, ropes = (one for one in usable(found) if isinstance(one, MemoryRecord))
    assert (works.text, works.source, works.key, works.created_at) == (
        "Ann works at Acme.",
        "graphiti/team",
        "d1",
        STORED,
    )
    assert works.metadata == {
        "role": "boss",
        "relation": "WORKS_AT",
        "source_node_uuid": "n1",
        "target_node_uuid": "n2",
        "source_node_name": "Ann",
        "target_node_name": "Acme",
        "episodes": ["e1"],
        "graphiti_created_at": "2025-05-05T00:00:00Z",
        "origin_class": "inferred",
    }
    assert (worked.metadata["archived"], worked.metadata["invalid_at"]) == (True, "2024-01-01T00:00:00Z")
    assert (ropes.text, ropes.metadata["page"], ropes.metadata["origin_class"]) == ("Acme makes ropes.", 3, "document")
    [talk] = [one for one in usable(found) if isinstance(one, Conversation)]
    assert talk.session_id == "graphiti-team"
    assert [(one.role, one.name, one.content) for one in talk.turns] == [
        ("user", "Ann", "I run Acme."),
        ("assistant", None, "Noted."),
    ]
    assert (skipped(found), altered(found)) == ([], [("d2", graphiti.ENDED)])


def test_answers_of_zep_name_nodes_roles_and_threads(tmp_path):
    ends = {"source_node_name": "Bob", "target_node_name": "Oslo", "target_node_labels": ["Place"]}
    of_zep = edge("z1", "Bob lives in Oslo.", **ends, group_id=None, graph_uuid="g", valid_at=None, reference_time=AT)
    said = {"source": "message", "valid_at": None, "group_id": None}
    episodes = [
        episode("m1", "Hi", **said, role="user", role_name="Bob", thread_uuid="t"),
        episode("m2", "42", **said, role="tool", role_name="sum", thread_uuid="t"),
        episode("m3", "Hello", **said, role_type="assistant", role="Bot", thread_id="t"),
    ]
    found = usable(records(Kind.GRAPHITI, json_file(tmp_path / "z.json", {"edges": [of_zep], "episodes": episodes})))
    talk, fact, bob, oslo, relation = found
    assert (talk.session_id, fact.source, fact.created_at) == ("graphiti-t", "graphiti/g", STORED)
    assert [(one.role, one.name, one.content) for one in talk.turns] == [
        ("user", "Bob", "Hi"),
        ("assistant", "sum", "sum returned: 42"),
        ("assistant", "Bot", "Hello"),
    ]
    assert (bob.name, oslo.name, oslo.entity_type) == ("Bob", "Oslo", "Place")
    assert relation.relation_type == "WORKS_AT"


def test_a_fact_that_ends_later_is_not_archived(tmp_path):
    path = json_lines(tmp_path / "x.jsonl", [*NODES, edge("d1", "Ann works.", invalid_at="2999-01-01T00:00:00Z")])
    [fact] = [one for one in usable(records(Kind.GRAPHITI, path)) if isinstance(one, MemoryRecord)]
    assert ("archived" in fact.metadata, fact.metadata["invalid_at"]) == (False, "2999-01-01T00:00:00Z")


def test_unusable_parts_are_counted(tmp_path):
    graph = {
        "nodes": [node("n1", "Ann"), node("n3", "Ann"), node("n4", ""), 7, {"a": 1}, node("n5", "x", "y" * 50_001)],
        "edges": [edge("d1", "Ann works."), edge("d2", " "), {"source_node_uuid": "e1", "target_node_uuid": "n1"}],
        "communities": [{"uuid": "c"}],
    }
    found = records(Kind.GRAPHITI, json_file(tmp_path / "x.json", graph))
    reasons = [one.reason for one in found if isinstance(one, Skipped)]
    assert [reasons.count(one) for one in (graphiti.NO_FACT, graphiti.NO_PART, graphiti.OTHER_PART)] == [2, 2, 1]
    assert altered(found) == [
        ("n3", graphiti.SAME_NAME),
        ("n5", graphiti.LONG_SUMMARY),
        ("d1", graphiti.NO_RELATION),
    ]
    refused: list[Any] = [{"nodes": []}, {"edges": 3}, [3]]
    for content in refused:
        with pytest.raises(NotImportable, match="neither nodes nor edges"):
            records(Kind.GRAPHITI, json_file(tmp_path / "x.json", content))


def test_a_graph_is_imported_once_with_archived_facts(service, tmp_path):
    path = json_file(tmp_path / "graph.json", GRAPH)
    with Souvenir(service.url) as client:
        with pytest.raises(NotImportable, match="need an agent"):
            import_file(client, path)
        first = import_file(client, path, agent="of-graphiti")
        again = import_file(client, path, agent="of-graphiti")
        there = client.in_namespace("of-graphiti")
        graph = there.graph.read()
        listed = list(there.transfer.export_memories(source="graphiti", source_boundary=True))
        messages = client.sessions.messages("of-graphiti", "graphiti-team")
        json_file(path, {**GRAPH, "edges": [{**EDGES[0], "expired_at": AT}, EDGES[1]]})
        ended = import_file(client, path, agent="of-graphiti")
        after = list(there.transfer.export_memories(source="graphiti", source_boundary=True))
    assert (first.memories.imported, first.links, first.messages.imported, first.skipped) == (5, 1, 2, ())
    assert (again.imported, again.updated, again.links, again.memories.unchanged) == (0, 0, 0, 5)
    assert (ended.imported, ended.updated) == (0, 1)
    assert {one["key"]: one["archived"] for one in after if "key" in one} == {"d1": True, "d2": True, "e3": False}
    assert [one.name for one in graph.entities] == ["Ann", "Acme"]
    assert [one.relation_type for one in graph.relations] == ["WORKS_AT"]
    assert {one["text"]: one["archived"] for one in listed if "text" in one} == {
        "Ann works at Acme.": False,
        "Ann worked at Initech.": True,
        "Acme makes ropes.": False,
    }
    assert next((one.content, one.created_at) for one in messages) == ("I run Acme.", STORED)


def test_a_changed_fact_that_has_ended_is_stored_once_more(service, tmp_path):
    path = json_file(tmp_path / "graph.json", {"edges": EDGES[1:]})
    with Souvenir(service.url, namespace="ended-facts") as client:
        counts = [import_file(client, path).memories.imported for _ in range(2)]
        json_file(path, {"edges": [{**EDGES[1], "fact": "Ann led Initech."}]})
        counts += [import_file(client, path).memories.imported for _ in range(3)]
        stored = [(one["text"], one["archived"]) for one in client.transfer.export_memories() if "text" in one]
    assert counts == [1, 0, 1, 0, 0]
    assert stored == [("Ann worked at Initech.", True), ("Ann led Initech.", True)]
