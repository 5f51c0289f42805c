"""Detecting the kind of a file from its content; unknown and malicious files are refused."""

from __future__ import annotations

import json
import os
import zipfile

import pytest

from souvenir_client.errors import NotImportable
from souvenir_client.importing import Kind, detect, read
from tests.client.importing.files import (
    chatgpt_conversation,
    chatgpt_message,
    claude_conversation,
    claude_message,
    records,
    usable,
    zipped,
)

CHATGPT = [chatgpt_conversation([chatgpt_message("user", 'I wrote "chat_messages": [ and "memory": "x"')])]
CLAUDE = [claude_conversation([claude_message("human", 'I wrote "mapping": { and "entityType": "x"', "m1")])]
GRAPH = {"entities": [{"name": "A", "entityType": "person", "observations": ["x"]}], "relations": []}


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (json.dumps(CHATGPT), Kind.CHATGPT),
        (json.dumps(CHATGPT, indent=2), Kind.CHATGPT),
        (json.dumps(CHATGPT[0]), Kind.CHATGPT),
        (json.dumps({"conversations": CHATGPT}), Kind.CHATGPT),
        (json.dumps(CLAUDE), Kind.CLAUDE),
        (json.dumps(CLAUDE, indent=2), Kind.CLAUDE),
        (json.dumps({"results": [{"id": "1", "memory": "x"}]}), Kind.MEM0),
        (json.dumps([{"id": "1", "memory": "x"}], indent=1), Kind.MEM0),
        ('{"id": "1", "memory": "x"}\n{"id": "2", "memory": "y"}', Kind.MEM0),
        (json.dumps(GRAPH), Kind.MCP_MEMORY),
        (json.dumps(GRAPH, indent=2), Kind.MCP_MEMORY),
        ('{"type":"relation","from":"a","to":"b","relationType":"c"}\n', Kind.MCP_MEMORY),
        ('\n\r\n{"text": "x", "metadata": {"mapping": {}}}\r\n', Kind.JSONL),
        ('{"_header":true,"count":0,"version":"4.0.0"}\n', Kind.JSONL),
        ('{"type":"header","agent_name":"a","version":"1.0.0"}\n', Kind.JSONL),
    ],
)
@pytest.mark.parametrize("name", ["export.json", "notes.md"])
def test_the_kind_is_detected_from_the_content(tmp_path, content, kind, name):
    path = tmp_path / name
    path.write_bytes(b"\xef\xbb\xbf" + content.encode())
    assert detect(path) is kind
    assert usable(records(kind, path)) or "header" in content


@pytest.mark.parametrize("content", ["Dear diary", "[]", "{}", "7", '{"a": 1}\n', "\x00\x01"])
def test_an_unknown_kind_of_file_is_refused_with_the_known_kinds(tmp_path, content):
    path = tmp_path / "what.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(NotImportable, match="jsonl, markdown, chatgpt, claude, mem0, mcp-memory"):
        detect(path)


def test_empty_missing_and_foreign_files_are_refused_with_the_reason(tmp_path):
    (tmp_path / "empty.json").write_bytes(b" \n")
    (tmp_path / "wide.jsonl").write_text('{"text": "x"}', encoding="utf-16")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    zipped(tmp_path / "photos.zip", {"a.png": b"x"})
    for name, said in {
        "empty.json": "it is empty",
        "missing.json": "does not exist",
        "pipe": "neither a file nor a folder",
        "wide.jsonl": "save it as UTF-8",
        "folder": "neither Markdown",
        "photos.zip": "no conversations.json",
    }.items():
        with pytest.raises(NotImportable, match=said):
            detect(tmp_path / name)
        with pytest.raises(NotImportable):
            read(Kind.JSONL, tmp_path / "missing.json")


def test_a_document_that_is_broken_or_nested_too_deep_is_refused(tmp_path):
    path = tmp_path / "conversations.json"
    for content, said in ((json.dumps(CHATGPT)[:-5], "not JSON"), ("[" * 200_000 + '{"mapping": {', "nested too deep")):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(NotImportable, match=said):
            read(Kind.CHATGPT, path)


def test_a_zip_bomb_is_refused_before_unpacking(tmp_path):
    path = zipped(tmp_path / "bomb.zip", {"conversations.json": b"[" + b" " * 50_000_000 + b"]"})
    assert path.stat().st_size < 100_000
    with pytest.raises(NotImportable, match="more than 200 times larger"):
        detect(path)
    with pytest.raises(NotImportable, match="more than 200 times larger"):
        read(Kind.CHATGPT, path)


def test_zip_members_with_traversal_paths_are_never_written_to_disk(tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    path = zipped(inner / "export.zip", {"../../conversations.json": CHATGPT, "../evil.json": b"x"})
    assert detect(path) is Kind.CHATGPT
    assert len(usable(records(Kind.CHATGPT, path))) == 1
    assert sorted(one.name for one in tmp_path.rglob("*")) == ["export.zip", "inner"]


def test_a_zip_that_is_damaged_is_refused(tmp_path):
    path = zipped(tmp_path / "export.zip", {"conversations.json": CHATGPT * 50})
    content = bytearray(path.read_bytes())
    content[60:120] = b"\xff" * 60
    path.write_bytes(bytes(content))
    assert zipfile.is_zipfile(path)
    with pytest.raises(NotImportable, match="damaged"):
        read(Kind.CHATGPT, path)
