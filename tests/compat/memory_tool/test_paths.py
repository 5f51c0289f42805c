"""Paths that are refused, with one sentence each, whatever the command."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from souvenir.conversations.document_paths import DocumentPath
from souvenir.core.errors import InvalidRequest
from tests.compat.memory_tool.conftest import Tool

OUTSIDE = "A path starts with /memories; send one such as /memories/notes.md"
DOTS = "A path has no name . or ..; send the whole path from /memories on"
EMPTY = "A path has a name between two slashes; leave out the second slash"
SIGNS = "A path has no backslash, control character or percent-encoding; send plain characters"

ATTACKS = {
    "": OUTSIDE,
    "/": OUTSIDE,
    "memories/a.md": OUTSIDE,
    "/etc/passwd": OUTSIDE,
    "/memoriesandmore/a.md": OUTSIDE,
    "/Memories/a.md": OUTSIDE,
    "//memories/a.md": OUTSIDE,
    "/%6demories/a.md": OUTSIDE,
    "\\memories\\a.md": OUTSIDE,
    "file:///memories/a.md": OUTSIDE,
    "/memories/../etc/passwd": DOTS,
    "/memories/a/../../b.md": DOTS,
    "/memories/..": DOTS,
    "/memories/.": DOTS,
    "/memories/./a.md": DOTS,
    "/memories//a.md": EMPTY,
    "/memories/a//b.md": EMPTY,
    "/memories//": EMPTY,
    "/memories/ /a.md": EMPTY,
    "/memories/\u200b": EMPTY,
    "/memories/%2e%2e/etc/passwd": SIGNS,
    "/memories/..%2f..%2fetc": SIGNS,
    "/memories/%252e%252e/a": SIGNS,
    "/memories/%00.md": SIGNS,
    "/memories/..\\..\\a.md": SIGNS,
    "/memories/a\\b.md": SIGNS,
    "/memories/a\0.md": SIGNS,
    "/memories/a\n.md": SIGNS,
    "/memories/\u202egnp.md": SIGNS,
    "/memories/" + "a" * 201: "A name in a path has at most 200 characters; send a shorter one",
    "/memories" + "/abcdefg" * 70: "A path has at most 500 characters; send a shorter one",
}

COMMANDS: dict[str, dict[str, Any]] = {
    "view": {},
    "create": {"file_text": "x"},
    "str_replace": {"old_str": "a", "new_str": "b"},
    "insert": {"insert_line": 0, "insert_text": "x"},
    "delete": {},
}


@pytest.fixture(scope="module")
def attacked(running) -> Tool:
    tool = Tool(running, "attacked")
    tool.done("create", path="/memories/a.md", file_text="a")
    return tool


@pytest.mark.parametrize("path", ATTACKS, ids=lambda path: ascii(path)[:40])
def test_a_path_that_is_not_plainly_below_the_root_is_refused_by_every_command(attacked: Tool, path: str):
    for command, sent in COMMANDS.items():
        said = attacked.refused(command, path=path, **sent)
        assert said == ATTACKS[path] or (path.endswith("/") and "names a directory" in said)
    assert attacked.refused("rename", old_path="/memories/a.md", new_path=path) == ATTACKS[path]
    assert attacked.refused("rename", old_path=path, new_path="/memories/b.md") == ATTACKS[path]
    assert attacked.texts() == {"memories/a.md": "a"}


@pytest.mark.parametrize(
    "path", ["/memories/…/a.md", "/memories/...", "/memories/100 %.md", "/memories/日本/ノート.md"]
)
def test_an_unusual_name_is_a_name(attacked: Tool, path: str):
    attacked.done("create", path=path, file_text="x")
    assert attacked.texts()[path[1:]] == "x"
    attacked.done("delete", path=path)


def test_sources_that_are_no_paths_are_no_documents(tool: Tool):
    for source in ("memories", "memories/../a", "memories//a", "memories/a/"):
        tool.post("/memory/upsert", text="t", source=source, key="document")
    tool.post("/memory/add", text="t", source="memories/plain.md")
    tool.post("/memory/upsert", text="t", source="memories/other.md", key="another")
    assert tool.done("view", path="/memories").splitlines()[1:] == ["0B\t/memories"]
    assert tool.refused("view", path="/memories/plain.md").startswith("The path /memories/plain.md does not exist.")


def test_a_file_and_a_directory_of_one_name_that_another_client_made_are_both_shown(tool: Tool):
    for source in ("memories/a", "memories/a/b.md"):
        tool.post("/memory/upsert", text="text", source=source, key="document")
    assert tool.done("view", path="/memories").splitlines()[2:] == [
        "4B\t/memories/a", "4B\t/memories/a/", "4B\t/memories/a/b.md"
    ]  # fmt: skip
    assert tool.done("view", path="/memories/a").endswith("     1\ttext")
    tool.done("delete", path="/memories/a")
    assert tool.memories() == []


@given(st.text(max_size=30) | st.lists(st.sampled_from(["memories", "a", "..", ".", "", "%2e", "\\"])).map("/".join))
def test_an_accepted_path_is_below_the_root_and_read_back_the_same(text: str):
    for candidate in (text, f"/memories/{text}"):
        try:
            path = DocumentPath.of(candidate)
        except InvalidRequest:
            continue
        assert path.source.split("/")[0] == "memories"
        assert not {"", ".", ".."} & set(path.names)
        assert str(path) == candidate.removesuffix("/")
        if path.names:
            assert DocumentPath.of_source(path.source) == path


UNSEEN = ("memories/dir//x", "memories/dir/we\\ird", "memories/dir/deep/%2e%2e", "memories/dir/x/")


def test_commands_leave_alone_what_other_clients_stored_where_no_path_leads(tool: Tool):
    for source in UNSEEN:
        tool.post("/memory/add", text=f"unseen {source}", source=source, metadata={"entity_key": "document"})
    unseen = {source: f"unseen {source}" for source in UNSEEN}
    missing = "The path /memories/dir does not exist. Please provide a valid path."
    assert tool.refused("delete", path="/memories/dir") == missing
    assert tool.refused("rename", old_path="/memories/dir", new_path="/memories/a") == missing
    tool.done("create", path="/memories/dir/a.md", file_text="seen")
    tool.done("rename", old_path="/memories/dir", new_path="/memories/moved")
    assert tool.texts() == {**unseen, "memories/moved/a.md": "seen"}
    tool.done("rename", old_path="/memories/moved", new_path="/memories/dir")
    tool.done("delete", path="/memories/dir")
    assert tool.texts() == unseen
    tool.done("create", path="/memories/dir", file_text="a file now")
    assert "a file now" in tool.done("view", path="/memories/dir")
