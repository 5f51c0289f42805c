"""import: each item of a file is stored once, and invalid items are reported."""

from __future__ import annotations

import json

import pytest

from souvenir_client.cli.import_ import KINDS
from souvenir_client.importing import Kind

CHAT = [
    {
        "uuid": "5b0c2f2e-0d0a-4e43-9a3b-1f6a2d3c4e5f",
        "name": "Colours",
        "created_at": "2025-04-02T09:30:00Z",
        "updated_at": "2025-04-02T09:31:00Z",
        "chat_messages": [
            {
                "uuid": "5b0c2f2e-0d0a-4e43-9a3b-1f6a2d3c4e60",
                "sender": "human",
                "text": "My favourite colour is blue.",
                "created_at": "2025-04-02T09:30:00Z",
            }
        ],
    }
]


def test_the_listed_kinds_can_be_imported():
    assert set(KINDS) == set(Kind)


def test_an_export_is_imported_once_into_another_namespace(run, answer, tmp_path):
    for text in ("One.", "Two."):
        run("add", text, "--namespace", "from")
    path = tmp_path / "all.ndjson"
    run("export", str(path), "--namespace", "from")
    first = run("import", str(path), "--namespace", "to")
    assert (first.exit_code, first.stdout) == (0, "Imported 2 memories (jsonl).\n")
    again = answer("import", str(path), "--namespace", "to")
    assert (again["memories"]["imported"], answer("list", "--namespace", "to")["total"]) == (0, 2)


def test_a_truncated_export_is_reported_and_imported(run, tmp_path):
    for text in ("One.", "Two."):
        run("add", text, "--namespace", "uncut")
    lines = run("export", "--namespace", "uncut").stdout.splitlines(keepends=True)
    path = tmp_path / "cut.ndjson"
    path.write_text("".join(lines[:-1]), encoding="utf-8")
    done = run("import", str(path), "--namespace", "cut", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["missing"] == [{"noun": "memories", "counted": 2, "held": 1}]
    assert done.stderr == "The file is incomplete: 1 of 2 memories are missing.\n"


def test_conversations_are_imported_into_the_named_agent(run, answer, tmp_path):
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(CHAT), encoding="utf-8")
    done = run("import", str(path), "--agent", "moved")
    assert (done.exit_code, done.stdout) == (0, "Imported 1 session, 1 message (claude).\n")
    assert answer("chat", "history", "moved")["messages"][0]["content"] == "My favourite colour is blue."


def test_a_markdown_folder_is_stored_under_a_source(answer, tmp_path):
    (tmp_path / "note.md").write_text("# Tea\n\nAna likes tea.\n", encoding="utf-8")
    answer("import", str(tmp_path), "--source", "notes", "--namespace", "md")
    [memory] = answer("list", "--source", "notes", "--namespace", "md")["memories"]
    assert "Ana likes tea." in memory["text"]


def test_invalid_items_are_reported_with_their_place(run, tmp_path):
    path = tmp_path / "lines.jsonl"
    path.write_text('{"text": "Good."}\n{"text": 7}\n', encoding="utf-8")
    done = run("import", str(path), "--kind", "jsonl", "--namespace", "half")
    assert (done.exit_code, done.stdout) == (0, "Imported 1 memory (jsonl).\n")
    assert done.stderr.startswith("Not imported: 1 (line 2")


def test_a_file_without_usable_items_exits_with_1(run, tmp_path):
    path = tmp_path / "lines.jsonl"
    path.write_text('{"text": 7}\n', encoding="utf-8")
    assert run("import", str(path), "--kind", "jsonl", "--namespace", "none").exit_code == 1


@pytest.mark.parametrize("content", [None, "", "nothing that is known", "{"])
def test_an_unknown_kind_of_file_is_wrong_usage(run, tmp_path, content):
    path = tmp_path / "what.json"
    if content is not None:
        path.write_text(content, encoding="utf-8")
    done = run("import", str(path), "--json")
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"{path} cannot be imported" in json.loads(done.stderr)["error"]["message"]


def test_conversations_take_no_source(run, tmp_path):
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(CHAT), encoding="utf-8")
    done = run("import", str(path), "--agent", "sourced", "--source", "foo")
    assert done.exit_code == 2
    assert "--source" in done.stderr


def test_conversations_without_an_agent_are_wrong_usage(run, tmp_path):
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(CHAT), encoding="utf-8")
    done = run("import", str(path))
    assert done.exit_code == 2
    assert "--agent" in done.stderr


def test_an_import_of_a_graph_counts_its_relations(run, tmp_path):
    pet = {"type": "entity", "entityType": "pet"}
    entities = [{**pet, "name": name} for name in ("Polly", "Rex")]
    relation = {"type": "relation", "from": "Polly", "to": "Rex", "relationType": "likes"}
    path = tmp_path / "memory.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in [*entities, relation]), encoding="utf-8")
    told = run("import", str(path), "--namespace", "graph").stdout
    assert told == "Imported 2 memories, 1 relation (mcp-memory).\n"
