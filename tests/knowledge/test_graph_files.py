"""Graphs as JSON: a round trip preserves every text."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from souvenir.knowledge.graph_export import Edge, Label, Node, NodeId, RelationType, as_json
from souvenir_client.errors import NotImportable
from souvenir_client.importing import Kind, read
from souvenir_client.importing.agent_graph import GraphFile, _of_json
from souvenir_client.importing.reading import Document

AT = datetime(2025, 4, 2, 9, 30, tzinfo=UTC)
USER, MESSAGE, CONCEPT = NodeId(Label.USER, 1), NodeId(Label.MESSAGE, 2), NodeId(Label.CONCEPT, 3)

texts = st.text(st.characters(exclude_categories=["Cs"]))


def written(text: str) -> bytes:
    nodes = [
        Node(USER, {"user_id": text, "name": "Alice", "created_at": AT}),
        Node(MESSAGE, {"message_id": "m", "content": text, "role": "user", "timestamp": AT}),
        Node(CONCEPT, {"name": "tea", "confidence": 0.5, "aliases": ["chai", "the drink"], "description": None}),
    ]
    edges = [
        Edge(RelationType.CONTAINS, USER, MESSAGE, {"sequence_number": 1}),
        Edge(RelationType.RELATES_TO, CONCEPT, CONCEPT, {"strength": 1.0, "relationship_type": text}),
    ]
    return b"".join(as_json("my & agent", nodes, edges))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("graphs")


def plain(graph: GraphFile) -> Any:
    nodes = [(one.id, one.label, one.properties) for one in graph.nodes]
    return graph.agent, nodes, [(one.type, one.from_id, one.to_id, one.properties) for one in graph.relations]


@settings(max_examples=50)
@given(texts)
def test_json_round_trips_every_text(folder: Path, text: str):
    path = folder / "it.json"
    path.write_bytes(written(text))
    agent, nodes, relations = plain(_of_json("it", Document(path).load()))
    assert agent == "my & agent"
    assert nodes[0] == (
        "user-1",
        "User",
        {"user_id": text, "name": "Alice", "created_at": AT.isoformat("T", "microseconds")},
    )
    assert nodes[1][2]["content"] == text
    assert nodes[2][2] == {"name": "tea", "confidence": 0.5, "aliases": ["chai", "the drink"]}
    assert relations[0] == ("CONTAINS", "user-1", "message-2", {"sequence_number": 1})
    assert relations[1][3] == {"strength": 1.0, "relationship_type": text}
    assert [len(found) for found in (nodes, relations)] == [3, 2]


def test_json_that_is_no_graph_is_refused(tmp_path: Path):
    path = tmp_path / "it.json"
    broken: list[object] = [[], {"nodes": 7}, {"relations": []}]
    for said in broken:
        path.write_text(json.dumps(said))
        with pytest.raises(NotImportable, match="it has no nodes"):
            read(Kind.GRAPH, path)
