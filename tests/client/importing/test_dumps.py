"""Dumps that are lists of memories: JSON lines, mem0, and the MCP memory server."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from souvenir_client.errors import NotImportable
from souvenir_client.importing import Kind, jsonl, knowledge_graph
from souvenir_client.importing.records import ImportedEntity, ImportedRelation
from tests.client.importing.files import altered, json_file, json_lines, records, skipped, usable


def test_a_plain_line_requires_text_only(tmp_path):
    lines = [
        {"text": "Ann likes tea."},
        {
            "text": "Bob likes rum.",
            "source": "bar",
            "key": "drink",
            "created_at": "2024-05-01",
            "metadata": {"category": "taste", "pinned": True},
        },
    ]
    first, second = usable(records(Kind.JSONL, json_lines(tmp_path / "x.jsonl", lines)))
    assert (first.text, first.source, first.created_at, first.metadata) == ("Ann likes tea.", "import", None, {})
    assert (second.source, second.key, second.created_at) == ("bar", "drink", "2024-05-01T00:00:00.000000+00:00")
    assert second.metadata == {"category": "taste", "pinned": True}
    placed = usable(records(Kind.JSONL, tmp_path / "x.jsonl", "old"))
    assert [one.source for one in placed] == ["old", "old/bar"]


def test_a_line_without_a_key_is_identified_by_its_content(tmp_path):
    path = json_lines(tmp_path / "x.jsonl", [{"text": "One"}, {"text": "Two"}, {"text": "One"}])
    first, second, third = (one.key for one in usable(records(Kind.JSONL, path)))
    assert first == third != second


def test_invalid_lines_are_counted_by_number_and_the_rest_imported(tmp_path):
    path = tmp_path / "x.jsonl"
    long = json.dumps({"text": "x" * 50_001}).encode()
    nested = b'{"text": "deep", "metadata": {"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}"
    big = json.dumps({"text": "big", "metadata": {"pinned": True, "blob": "x" * 70_000}}).encode()
    lines = [b'{"text": "good"}', b"", b"{broken", b"[1]", b'{"text": null}', b'{"text": "\xff"}', long, nested]
    path.write_bytes(b"\xef\xbb\xbf" + b"\r\n".join([*lines, b'{"text": "undated", "created_at": "soon"}', big]))
    found = records(Kind.JSONL, path)
    assert [one.text for one in usable(found)] == ["good", "undated", "big"]
    assert skipped(found) == [
        ("line 3", jsonl.NO_OBJECT),
        ("line 4", jsonl.NO_OBJECT),
        ("line 5", "it has no text"),
        ("line 6", jsonl.NO_OBJECT),
        ("line 7", "its text is longer than 50000 characters; split it"),
        ("line 8", jsonl.NO_OBJECT),
    ]
    assert [place for place, _ in altered(found)] == ["line 9", "line 10"]
    assert usable(found)[2].metadata == {"pinned": True}


def test_metadata_is_normalised_to_valid_json(tmp_path):
    path = tmp_path / "x.jsonl"
    path.write_text('{"text": "t", "metadata": {"a": NaN, "b": 1e999, "c": "\\ud800", "d": {"e": ["\\u0000"]}}}')
    [memory] = usable(records(Kind.JSONL, path))
    assert memory.metadata == {"a": None, "b": None, "c": "\ufffd", "d": {"e": [""]}}


MEM0 = {
    "id": "892db2ae-06d9-49e5-8b3e-585ef9b85b8e",
    "memory": "Likes to play cricket on weekends",
    "hash": "285d07801ae42054732314853e9eadd7",
    "metadata": {"category": "hobbies", "source": "chat", "empty": None},
    "score": None,
    "created_at": "2024-07-26T01:29:52.736540-07:00",
    "updated_at": None,
    "user_id": "alice",
}


@pytest.mark.parametrize("wrapped", [[MEM0], {"results": [MEM0]}, {"memories": [MEM0]}])
def test_a_memory_of_mem0_keeps_its_id_time_owner_and_metadata(tmp_path, wrapped):
    [memory] = usable(records(Kind.MEM0, json_file(tmp_path / "dump.json", wrapped)))
    assert (memory.text, memory.source, memory.key) == (MEM0["memory"], "mem0/alice", MEM0["id"])
    assert memory.created_at == "2024-07-26T08:29:52.736540+00:00"
    assert memory.metadata == {
        "category": "hobbies",
        "mem0_source": "chat",
        "user_id": "alice",
        "origin_class": "inferred",
    }


def test_mem0_exports_may_be_lines_and_contain_invalid_items(tmp_path):
    path = json_lines(tmp_path / "dump.jsonl", [MEM0, {**MEM0, "memory": "", "id": "x"}])
    found = records(Kind.MEM0, path)
    assert [one.text for one in usable(found)] == [MEM0["memory"]]
    assert skipped(found) == [("x", "it has no text")]
    graph = {"results": [MEM0, 7, {"memory": "Nobody's"}], "relations": [{"source": "a", "target": "b"}]}
    found = records(Kind.MEM0, json_file(tmp_path / "graph.json", graph), "old/mem0")
    assert [one.source for one in usable(found)] == ["old/mem0/alice", "old/mem0"]
    assert [place for place, _ in skipped(found)] == ["memory 2", "relation 1"]
    with pytest.raises(NotImportable, match="no list of memories"):
        records(Kind.MEM0, json_file(tmp_path / "none.json", {"results": 7}))


ANN = {"type": "entity", "name": "Ann_Lee", "entityType": "person", "observations": ["Speaks Basque", "Runs"]}
WORKS = {"type": "relation", "from": "Ann_Lee", "to": "Acme", "relationType": "works_at"}


def test_entities_and_relations_of_the_memory_server_are_read_verbatim(tmp_path):
    acme = {"type": "entity", "name": "Acme", "entityType": "", "observations": []}
    odd = {**ANN, "name": "x/y\nz ", "observations": [" spaces stay ", "two\nlines"]}
    found = usable(records(Kind.MCP_MEMORY, json_lines(tmp_path / "memory.jsonl", [ANN, acme, odd, WORKS])))
    assert found == [
        ImportedEntity("Ann_Lee", "person", ["Speaks Basque", "Runs"], "line 1"),
        ImportedEntity("Acme", "", [], "line 2"),
        ImportedEntity("x/y\nz ", "person", [" spaces stay ", "two\nlines"], "line 3"),
        ImportedRelation("Ann_Lee", "Acme", "works_at", "line 4"),
    ]


def test_an_entity_with_many_observations_is_split(tmp_path):
    said = [f"Said {number}" for number in range(250)]
    path = json_lines(tmp_path / "memory.jsonl", [{**ANN, "observations": said}])
    found = usable(records(Kind.MCP_MEMORY, path))
    assert {one.name for one in found} == {"Ann_Lee"}
    assert [text for one in found for text in one.observations] == said
    assert max(len(one.observations) for one in found) == knowledge_graph.MAX_OBSERVATIONS


def test_an_answer_of_read_graph_equals_the_file(tmp_path):
    graph = {"entities": [{**ANN, "type": None}], "relations": [{**WORKS, "type": None}]}
    lines = usable(records(Kind.MCP_MEMORY, json_lines(tmp_path / "memory.jsonl", [ANN, WORKS])))
    whole = usable(records(Kind.MCP_MEMORY, json_file(tmp_path / "graph.json", graph)))
    assert [replace(one, place="") for one in whole] == [replace(one, place="") for one in lines]


def test_invalid_items_of_a_graph_are_counted(tmp_path):
    observations = [" ", {"content": "Dances", "timestamp": "2025-06-26T18:45:00.000Z"}, 7]
    long = {**WORKS, "relationType": "x" * 181}
    lines = [{**ANN, "observations": observations}, {"type": "entity"}, {"type": "event", "name": "x"}, WORKS, 3]
    lines += [long, {**WORKS, "to": ""}, {**ANN, "name": "n" * 501}, {**ANN, "entityType": "t" * 201}]
    found = records(Kind.MCP_MEMORY, json_lines(tmp_path / "memory.jsonl", lines))
    ann, works, cut = usable(found)
    assert (ann.observations, works.relation_type, len(cut.entity_type)) == (["Dances"], "works_at", 200)
    assert skipped(found) == [
        ("line 1, observation 1", "it has no text"),
        ("line 1, observation 3", "it has no text"),
        ("line 2", knowledge_graph.NO_PART_OF_A_GRAPH),
        ("line 3", knowledge_graph.NO_PART_OF_A_GRAPH),
        ("line 5", jsonl.NO_OBJECT),
        ("line 6", knowledge_graph.NO_TYPE),
        ("line 7", knowledge_graph.NO_NAME),
        ("line 8", knowledge_graph.NO_NAME),
    ]
    assert altered(found) == [("line 1", knowledge_graph.NO_TIMES), ("line 9", knowledge_graph.LONG_TYPE)]
