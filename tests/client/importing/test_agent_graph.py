"""Graphs of agents as records: sessions in order, memories, and claims about concepts."""

from __future__ import annotations

from typing import Any

import pytest

from souvenir_client.errors import NotImportable
from souvenir_client.importing import Conversation, ExportedLine, Kind, detect, read
from souvenir_client.importing.agent_graph import LOST_END, UNKNOWN_LABEL
from souvenir_client.importing.records import ConceptRelationStatement, ConceptStatement
from tests.client.importing.files import json_file, records, skipped, usable


def node(node_id: str, label: str, **properties: Any) -> dict[str, Any]:
    return {"id": node_id, "label": label, "properties": properties}


def relation(kind: str, one: str, other: str, **properties: Any) -> dict[str, Any]:
    return {"type": kind, "from_id": one, "to_id": other, "properties": properties}


OURS = {
    "format": "souvenir-graph",
    "version": "1.0",
    "agent": "my_agent",
    "nodes": [
        node("u", "User", user_id="alice", name="alice"),
        node("s", "Session", session_id="monday", started_at="2025-04-02T09:00:00Z", ended_at="2025-04-02T10:00:00Z"),
        node(
            "m2", "Message", message_id="b", content=" Green. \r\n", role="assistant", timestamp="2025-04-02T09:02:00Z"
        ),
        node("m1", "Message", message_id="a", content="Tea?", role="user", timestamp="2025-04-02T09:01:00Z"),
        node("c1", "Concept", name="Tea", description="A drink.", aliases=["chai"]),
        node("c2", "Concept", name="Green", key="green", kind="name", stated=["kind"], description="derived"),
        node("t", "Topic", name="tea, green"),
        node(
            "k", "Memory", memory_id="7", content="Likes tea.", importance=0.9, source="notes", created_at="2025-04-01"
        ),
    ],
    "relations": [
        relation("SENT", "u", "m1"),
        relation("RECEIVED", "u", "m2", response_to="a"),
        relation("CONTAINS", "s", "m2", sequence_number=2),
        relation("CONTAINS", "s", "m1", sequence_number=1),
        relation("MENTIONS", "m1", "c1", relevance=0.4),
        relation("RELATES_TO", "c1", "c2", relationship_type="co_occurs", strength=0.7),
        relation("RELATES_TO", "c1", "c2", relationship_type="can be", strength=2.0),
    ],
}


def test_a_graph_becomes_sessions_memories_and_claims_about_concepts(tmp_path):
    path = json_file(tmp_path / "graph.json", OURS)
    assert (detect(path), read(Kind.GRAPH, path).agent) == (Kind.GRAPH, "my_agent")
    talk, memory, *said = records(Kind.GRAPH, path)
    assert isinstance(talk, Conversation)
    assert (talk.session_id, talk.user) == ("monday", "alice")
    assert [str(at)[11:16] for at in (talk.started_at, talk.ended_at)] == ["09:00", "10:00"]
    turns = [(turn.key, turn.role, turn.content, turn.user) for turn in talk.turns]
    assert turns == [("a", "user", "Tea?", "alice"), ("b", "assistant", " Green. \r\n", "alice")]
    assert isinstance(memory, ExportedLine)
    expected = {"text": "Likes tea.", "source": "notes", "id": 7, "created_at": "2025-04-01T00:00:00.000000+00:00"}
    assert {name: memory.said[name] for name in expected} == expected
    assert memory.said["custom_fields"]["importance"] == 0.9
    assert said == [
        ConceptStatement("Tea", None, "A drink.", ("chai",), None, "concept Tea"),
        ConceptStatement("green", None, None, (), "name", "concept green"),
        ConceptRelationStatement("Tea", "green", "can be", 1.0, "relation 7"),
    ]


def test_the_tables_of_the_locrit_graph_engine_are_read_by_name(tmp_path):
    dump = {
        "nodes": [
            node("0:0", "User", id="bob", name="bob"),
            node("1:0", "Session", id="web_bob_pixie", name="Talk", created_at="2025-01-01 10:00:00", user_id="bob"),
            node("2:1", "Message", id="assistant_2", content="Hi", role="assistant", timestamp="2025-01-01 10:00:02"),
            node("2:0", "Message", id="user_1", content="Hello", role="user", timestamp="2025-01-01 10:00:01"),
            node("2:2", "Message", id="user_3", content="Alone", role="user", session_id="other"),
            node("3:0", "Memory", id="memory_20250101", content="Bob is here."),
            node("4:0", "Fact", id="fact_1", subject="Bob", predicate="is", object="here"),
            node("5:0", "Concept", id="concept_bob", name="Bob", description="A user."),
        ],
        "relations": [
            relation("PART_OF", "2:1", "1:0", position=0),
            relation("PART_OF", "2:0", "1:0", position=0),
            relation("RELATES_TO", "5:0", "9:9", relationship_type="knows"),
        ],
    }
    found = records(Kind.GRAPH, json_file(tmp_path / "kuzu.json", dump))
    talk, alone, memory, concept = usable(found)
    assert (talk.session_id, talk.title, talk.user) == ("web_bob_pixie", "Talk", "bob")
    assert [turn.content for turn in talk.turns] == ["Hello", "Hi"]
    assert (alone.session_id, [turn.content for turn in alone.turns]) == ("other", ["Alone"])
    assert (memory.said["source"], memory.said["key"], memory.said.get("id")) == ("graph", "memory_20250101", None)
    assert (concept.key, concept.description) == ("Bob", "A user.")
    assert skipped(found) == [("relation 3", LOST_END), ("node 4:0", UNKNOWN_LABEL)]


def test_graphml_of_another_program_is_read(tmp_path):
    path = tmp_path / "graph.graphml"
    path.write_text(
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns"><key id="c" for="node" attr.name="content"/>'
        '<key id="n" for="edge" attr.name="sequence_number" attr.type="long"/><graph edgedefault="directed">'
        '<node id="m" labels=":Message"><data key="c">Hello &amp; good day</data></node>'
        '<node id="s"><data key="labels">:Session</data></node>'
        '<edge source="s" target="m" label="CONTAINS"><data key="n">1</data></edge></graph></graphml>'
    )
    [talk] = usable(records(Kind.GRAPH, path))
    assert (talk.session_id, [turn.content for turn in talk.turns]) == ("s", ["Hello & good day"])


def test_an_invalid_graph_is_refused(tmp_path):
    with pytest.raises(NotImportable, match="it has no nodes"):
        read(Kind.GRAPH, json_file(tmp_path / "none.json", {"relations": []}))
