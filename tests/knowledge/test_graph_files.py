"""Graphs as JSON and GraphML: a round trip preserves every text, and hostile XML is refused."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from souvenir.api.agent_graph import NODE_TYPES, RELATION_TYPES, graphml, json_graph
from souvenir.knowledge.graph_export import Edge, GraphFormat, Label, Node, NodeId, RelationType
from souvenir_client.errors import NotImportable
from souvenir_client.importing import Kind, detect, read
from souvenir_client.importing.agent_graph import _of_json
from souvenir_client.importing.graphml import GraphFile, read_graphml
from souvenir_client.importing.reading import Document
from tests.cases import for_all

AT = datetime(2025, 4, 2, 9, 30, tzinfo=UTC)
USER, MESSAGE, CONCEPT = NodeId(Label.USER, 1), NodeId(Label.MESSAGE, 2), NodeId(Label.CONCEPT, 3)
NOT_IN_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")

texts = st.text(st.characters(exclude_categories=["Cs"]))


def written(written_as: GraphFormat, text: str) -> bytes:
    nodes = [
        Node(USER, {"user_id": text, "name": "Alice", "created_at": AT}),
        Node(MESSAGE, {"message_id": "m", "content": text, "role": "user", "timestamp": AT}),
        Node(CONCEPT, {"name": "tea", "confidence": 0.5, "aliases": ["chai", "the drink"], "description": None}),
    ]
    edges = [
        Edge(RelationType.SENT, USER, MESSAGE, {"relationship_type": "sent", "timestamp": AT}),
        Edge(RelationType.CONTAINS, USER, MESSAGE, {"sequence_number": 1}),
        Edge(RelationType.MENTIONS, MESSAGE, CONCEPT, {"relevance": 0.25}),
        Edge(RelationType.BELONGS_TO, MESSAGE, CONCEPT, {"primary_topic": True}),
        Edge(RelationType.RELATES_TO, CONCEPT, CONCEPT, {"strength": 1.0, "relationship_type": text}),
    ]
    return b"".join(written_as("my & agent", nodes, edges))


def read_back(path: Path, content: bytes) -> GraphFile:
    path.write_bytes(content)
    document = Document(path)
    return read_graphml(document) if content.startswith(b"<") else _of_json("it", document.load())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("graphs")


def plain(graph: GraphFile) -> Any:
    nodes = [(one.id, one.label, one.properties) for one in graph.nodes]
    return graph.agent, nodes, [(one.type, one.from_id, one.to_id, one.properties) for one in graph.relations]


@settings(max_examples=50)
@given(texts)
def test_json_round_trips_every_text(folder: Path, text: str):
    content = written(json_graph, text)
    agent, nodes, relations = plain(read_back(folder / "it.json", content))
    assert agent == "my & agent"
    user = {"user_id": text, "name": "Alice", "created_at": AT.isoformat("T", "microseconds")}
    assert nodes[0] == ("user-1", "User", user)
    assert nodes[1][2]["content"] == text
    assert nodes[2][2] == {"name": "tea", "confidence": 0.5, "aliases": ["chai", "the drink"]}
    assert relations[1] == ("CONTAINS", "user-1", "message-2", {"sequence_number": 1})
    assert relations[4][3] == {"strength": 1.0, "relationship_type": text}
    assert [len(found) for found in (nodes, relations)] == [3, 5]


@settings(max_examples=50)
@given(texts)
def test_graphml_replaces_characters_that_xml_cannot_hold(folder: Path, text: str):
    of_xml = plain(read_back(folder / "it.graphml", written(graphml, text)))
    of_json = plain(read_back(folder / "it.json", written(json_graph, NOT_IN_XML.sub("\ufffd", text))))
    of_json[1][2][2]["aliases"] = "chai\nthe drink"
    assert of_xml == of_json


@settings(max_examples=20)
@given(texts)
def test_graphml_opens_in_networkx_with_typed_values(folder: Path, text: str):
    (folder / "nx.graphml").write_bytes(written(graphml, text))
    graph = networkx.read_graphml(folder / "nx.graphml")
    assert (graph.is_directed(), graph.number_of_nodes(), graph.number_of_edges()) == (True, 3, 5)
    assert graph.graph["agent"] == "my & agent"
    assert graph.nodes["concept-3"]["confidence"] == 0.5
    values = {data["label"]: data for _, _, data in graph.edges(data=True)}
    assert (values["CONTAINS"]["sequence_number"], values["BELONGS_TO"]["primary_topic"]) == (1, True)


def test_every_written_property_is_declared():
    declared = re.findall(rb'for="(node|edge)" attr.name="(\w+)"', written(graphml, "t"))
    assert {name.decode() for of, name in declared if of == b"node"} == set(NODE_TYPES)
    assert {name.decode() for of, name in declared if of == b"edge"} == set(RELATION_TYPES)


LAUGHS = '<!DOCTYPE graphml [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'
BODY = '<graphml><graph><node id="n"><data key="content">{}</data></node></graph></graphml>'


@for_all(
    "content",
    [
        LAUGHS + BODY.format("&b;"),
        '<!DOCTYPE graphml [<!ENTITY a SYSTEM "file:///etc/passwd">]>' + BODY.format("&a;"),
        '<!DOCTYPE graphml SYSTEM "http://127.0.0.1:1/graph.dtd">' + BODY.format("x"),
        '<!DOCTYPE graphml [<!ENTITY % a SYSTEM "http://127.0.0.1:1/"> %a;]>' + BODY.format("x"),
    ],
)
def test_a_file_with_a_document_type_is_refused(tmp_path: Path, content: str):
    path = tmp_path / "hostile.graphml"
    path.write_text('<?xml version="1.0"?>' + content)
    assert detect(path) is Kind.GRAPH
    with pytest.raises(NotImportable, match="declares a document type") as refused:
        read(Kind.GRAPH, path)
    assert "\n" not in str(refused.value)


@for_all(
    "content, reason",
    [
        (BODY.format("&unknown;"), "it is not XML"),
        (BODY[:-3], "it is not XML"),
        ("<graphml>" * 30, "nested deeper"),
        ("<graphml></graphml>", "no <graphml> with a <graph>"),
        ("<other/>", "no <graphml> with a <graph>"),
    ],
)
def test_files_that_are_no_graph_are_refused(tmp_path: Path, content: str, reason: str):
    path = tmp_path / "broken.graphml"
    path.write_text(content)
    with pytest.raises(NotImportable, match=reason):
        read(Kind.GRAPH, path)


def test_json_that_is_no_graph_is_refused(tmp_path: Path):
    path = tmp_path / "it.json"
    for content in ("[]", '{"nodes": 7}', '{"relations": []}'):
        path.write_text(content)
        with pytest.raises(NotImportable, match="it has no nodes"):
            read(Kind.GRAPH, path)
