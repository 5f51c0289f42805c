"""Every command of the memory tool over HTTP: what the model reads then, and what is stored."""

from __future__ import annotations

import pytest

from souvenir.compat.memory_tool.commands import REDACTED
from souvenir.compat.memory_tool.texts import size_of
from souvenir.conversations.documents import MAX_DOCUMENT_CHARS
from tests.compat.memory_tool.conftest import Tool

TODO = "/memories/notes/todo.md"
LINES = "- Call Alice\n- Buy tea\n"


@pytest.fixture
def noted(tool: Tool) -> Tool:
    tool.done("create", path=TODO, file_text=LINES)
    return tool


def test_the_root_of_an_agent_that_does_not_exist_yet_is_empty_and_looking_does_not_create_it(tool: Tool):
    shown = tool.done("view", path="/memories")
    assert shown.splitlines() == [
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:",
        "0B\t/memories",
    ]
    assert tool.client.get(f"/agents/{tool.agent}", headers=tool.headers).status_code == 404


def test_a_created_file_is_shown_with_numbered_lines_and_its_agent_exists(noted: Tool):
    assert noted.done("view", path=TODO) == (
        f"Here's the content of {TODO} with line numbers:\n     1\t- Call Alice\n     2\t- Buy tea\n     3\t"
    )
    assert noted.client.get(f"/agents/{noted.agent}", headers=noted.headers).status_code == 200


def test_a_directory_lists_two_levels_with_sizes_and_without_hidden_names(noted: Tool):
    for path, text in (
        ("/memories/a.md", "x" * 1536),
        ("/memories/notes/deep/er/file.md", "four"),
        ("/memories/.secret/key.md", "hidden"),
        ("/memories/notes/.draft", "hidden"),
        ("/memories/Ä.md", "ä"),
    ):
        tool_answer = noted.done("create", path=path, file_text=text)
        assert tool_answer == f"File created successfully at: {path}"
    assert noted.done("view", path="/memories/").splitlines()[1:] == [
        "1.5K\t/memories",
        "1.5K\t/memories/a.md",
        "33B\t/memories/notes/",
        "4B\t/memories/notes/deep/",
        "23B\t/memories/notes/todo.md",
        "2B\t/memories/Ä.md",
    ]
    assert noted.done("view", path="/memories/notes/deep").splitlines()[1:] == [
        "4B\t/memories/notes/deep",
        "4B\t/memories/notes/deep/er/",
        "4B\t/memories/notes/deep/er/file.md",
    ]
    assert noted.done("view", path="/memories/.secret").splitlines()[-1] == "6B\t/memories/.secret/key.md"


@pytest.mark.parametrize(
    ("count", "shown"),
    [(0, "0B"), (1023, "1023B"), (1024, "1K"), (1536, "1.5K"), (2**20, "1M"), (2**40, "1024G")],
)
def test_a_size_is_shown_in_the_largest_unit_that_it_reaches(count: int, shown: str):
    assert size_of(count) == shown


@pytest.mark.parametrize(
    ("view_range", "shown"),
    [([2, 2], "     2\t- Buy tea"), ([2, -1], "     2\t- Buy tea\n     3\t"), ([0, 1], "     1\t- Call Alice")],
)
def test_a_range_shows_its_lines_only(noted: Tool, view_range: list[int], shown: str):
    assert noted.done("view", path=TODO, view_range=view_range).partition("\n")[2] == shown


@pytest.mark.parametrize(
    ("view_range", "sentence"),
    [
        ([1], "`view_range` takes two line numbers, such as [1, 20], or [1, -1] for the whole file"),
        ([9, 12], "Invalid `view_range`: the file has the lines 1 to 3; send a range of these"),
        ([3, 1], "Invalid `view_range`: the file has the lines 1 to 3; send a range of these"),
    ],
)
def test_a_range_of_no_lines_is_refused(noted: Tool, view_range: list[int], sentence: str):
    assert noted.refused("view", path=TODO, view_range=view_range) == sentence


def test_a_range_says_nothing_about_a_directory(noted: Tool):
    assert noted.done("view", path="/memories", view_range=[1, 2]) == noted.done("view", path="/memories")


def test_create_replaces_a_file_and_its_history_keeps_the_version_before(noted: Tool):
    [before] = noted.memories()
    assert noted.done("create", path=TODO, file_text="New") == f"File created successfully at: {TODO}"
    [after] = noted.memories()
    assert (after["id"], after["text"]) == (before["id"], "New")
    changes = noted.get(f"/memory/{after['id']}/history")["changes"]
    assert [change["after"]["text"] for change in changes] == [LINES, "New"]


def test_str_replace_shows_the_lines_around_the_change(tool: Tool):
    tool.done("create", path=TODO, file_text="\n".join("abcdefg"))
    shown = tool.done("str_replace", path=TODO, old_str="d", new_str="D\nand more")
    first, _, snippet = shown.partition("\n")
    assert first == "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
    assert snippet == "     2\tb\n     3\tc\n     4\tD\n     5\tand more\n     6\te"
    assert tool.texts() == {"memories/notes/todo.md": "a\nb\nc\nD\nand more\ne\nf\ng"}


@pytest.mark.parametrize(
    ("old", "sentence"),
    [
        ("Bob", f"No replacement was performed, old_str `Bob` did not appear verbatim in {TODO}."),
        (
            "- ",
            "No replacement was performed. Multiple occurrences of old_str `- ` in lines: 1, 2. Please ensure it is "
            "unique",
        ),
        ("", "No replacement was performed, `old_str` is empty; send the text to replace"),
    ],
)
def test_str_replace_takes_a_text_that_occurs_once(noted: Tool, old: str, sentence: str):
    assert noted.refused("str_replace", path=TODO, old_str=old, new_str="x") == sentence
    assert noted.texts() == {"memories/notes/todo.md": LINES}


@pytest.mark.parametrize(
    ("line", "text", "after"),
    [
        (0, "# To do\n", f"# To do\n{LINES}"),
        (1, "- Rest", "- Call Alice\n- Rest\n- Buy tea\n"),
        (2, "- Rest\n- Sleep\n", f"{LINES}- Rest\n- Sleep\n"),
    ],
)
def test_insert_adds_lines_after_the_numbered_one(noted: Tool, line: int, text: str, after: str):
    assert noted.done("insert", path=TODO, insert_line=line, insert_text=text) == f"The file {TODO} has been edited."
    assert noted.texts() == {"memories/notes/todo.md": after}


@pytest.mark.parametrize("line", [-1, 3])
def test_insert_after_a_line_that_does_not_exist_is_refused(noted: Tool, line: int):
    sentence = f"Invalid `insert_line` parameter: {line}. It should be within the range of lines of the file: [0, 2]"
    assert noted.refused("insert", path=TODO, insert_line=line, insert_text="x") == sentence


def test_delete_of_a_directory_deletes_all_below_it_and_nothing_beside_it(noted: Tool):
    noted.done("create", path="/memories/notes/a/b.md", file_text="b")
    noted.done("create", path="/memories/notes-old.md", file_text="old")
    assert noted.done("delete", path="/memories/notes") == "Successfully deleted /memories/notes"
    assert noted.texts() == {"memories/notes-old.md": "old"}
    assert noted.refused("delete", path="/memories/notes").startswith("The path /memories/notes does not exist.")


def test_a_directory_with_a_pinned_file_is_not_deleted_at_all(noted: Tool):
    noted.done("create", path="/memories/notes/rules.md", file_text="Be kind")
    [pinned] = [memory["id"] for memory in noted.memories() if memory["text"] == "Be kind"]
    noted.post("/memory/update-batch", ids=[pinned], pinned=True)
    sentence = "The file /memories/notes/rules.md is pinned; keep it, or ask its owner to unpin it"
    assert noted.refused("delete", path="/memories/notes") == sentence
    assert len(noted.memories()) == 2


def test_rename_moves_a_directory_with_the_ids_and_histories_of_its_files(noted: Tool):
    noted.done("create", path="/memories/notes/a/b.md", file_text="b")
    before = {memory["text"]: memory["id"] for memory in noted.memories()}
    shown = noted.done("rename", old_path="/memories/notes", new_path="/memories/done/2026")
    assert shown == "Successfully renamed /memories/notes to /memories/done/2026"
    assert noted.texts() == {"memories/done/2026/todo.md": LINES, "memories/done/2026/a/b.md": "b"}
    assert {memory["text"]: memory["id"] for memory in noted.memories()} == before
    changes = noted.get(f"/memory/{before[LINES]}/history")["changes"]
    assert [change["after"]["source"] for change in changes] == ["memories/notes/todo.md", "memories/done/2026/todo.md"]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        (TODO, "/memories/b.md", "The destination /memories/b.md already exists"),
        (TODO, "/memories/notes", "The destination /memories/notes already exists"),
        (TODO, TODO, f"The destination {TODO} already exists"),
        (TODO, "/memories", "The destination /memories already exists"),
        ("/memories", "/memories/x", "Cannot rename the /memories directory itself"),
        ("/memories/none", "/memories/x", "The path /memories/none does not exist. Please provide a valid path."),
        (
            "/memories/notes",
            "/memories/notes/old",
            "/memories/notes cannot be moved into itself; choose a destination outside of it",
        ),
        (TODO, f"{TODO}/x", f"{TODO} cannot be moved into itself; choose a destination outside of it"),
        (
            TODO,
            "/memories/b.md/x",
            "/memories/b.md is a file, so nothing can be below it; rename or delete it first",
        ),
        (
            "/memories/notes",
            "/memories/" + "/".join(["x" * 120] * 4),
            "A path has at most 500 characters; send a shorter one",
        ),
    ],
)
def test_a_rename_that_cannot_be_done_changes_nothing(noted: Tool, old: str, new: str, sentence: str):
    noted.done("create", path="/memories/b.md", file_text="b")
    noted.done("create", path=f"/memories/notes/{'z' * 30}.md", file_text="z")
    before = noted.texts()
    assert noted.refused("rename", old_path=old, new_path=new) == sentence
    assert noted.texts() == before


@pytest.mark.parametrize(
    ("command", "sent"),
    [
        ("create", {"file_text": "x"}),
        ("str_replace", {"old_str": "a", "new_str": "b"}),
        ("insert", {"insert_line": 0, "insert_text": "x"}),
    ],
)
def test_a_directory_is_no_file(noted: Tool, command: str, sent: dict[str, object]):
    assert "director" in noted.refused(command, path="/memories/notes/", **sent)
    assert noted.refused(command, path="/memories/notes", **sent) in {
        "/memories/notes is a directory; send the path of a file",
        "The path /memories/notes is not a file.",
    }
    assert noted.texts() == {"memories/notes/todo.md": LINES}


@pytest.mark.parametrize(
    ("command", "sent"),
    [
        ("view", {}),
        ("str_replace", {"old_str": "a", "new_str": "b"}),
        ("insert", {"insert_line": 0, "insert_text": "x"}),
        ("delete", {}),
    ],
)
def test_what_does_not_exist_is_named(tool: Tool, command: str, sent: dict[str, object]):
    sentence = "The path /memories/none.md does not exist. Please provide a valid path."
    assert tool.refused(command, path="/memories/none.md", **sent) == sentence
    assert tool.memories() == []


def test_nothing_is_stored_below_a_file(noted: Tool):
    sentence = f"{TODO} is a file, so nothing can be below it; rename or delete it first"
    assert noted.refused("create", path=f"{TODO}/deep/er.md", file_text="x") == sentence
    assert noted.refused("delete", path="/memories") == "Cannot delete the /memories directory itself"
    assert noted.texts() == {"memories/notes/todo.md": LINES}


@pytest.mark.parametrize(
    ("command", "sent", "sentence"),
    [
        ("view", {}, "The command view takes `path`; send it"),
        ("create", {"path": TODO}, "The command create takes `file_text`; send it"),
        ("str_replace", {"path": TODO, "old_str": "a"}, "The command str_replace takes `new_str`; send it"),
        (
            "insert",
            {"path": TODO, "insert_text": "a"},
            "The command insert takes `insert_line`; send 0 for the beginning of the file",
        ),
        ("rename", {"old_path": TODO}, "The command rename takes `new_path`; send it"),
        (
            "undo",
            {"path": TODO},
            "There is no such command; send one of view, create, str_replace, insert, delete, rename",
        ),
    ],
)
def test_a_call_that_is_not_complete_is_told_what_to_send(tool: Tool, command, sent, sentence):
    assert tool.refused(command, **sent) == sentence


def test_fields_of_a_wrong_type_are_an_invalid_request(tool: Tool):
    answer = tool.send("insert", path=TODO, insert_line="first", insert_text="x")
    assert (answer.status_code, answer.json()["code"]) == (422, "invalid_request")


BLANK = "A file holds at least one visible character; to empty it, delete it"


@pytest.mark.parametrize("text", ["", " \n\t", "\u200b"])
def test_an_empty_file_is_refused_by_every_command(noted: Tool, text: str):
    assert noted.refused("create", path="/memories/empty.md", file_text=text) == BLANK
    assert noted.refused("str_replace", path=TODO, old_str=LINES, new_str=text) == BLANK
    assert noted.texts() == {"memories/notes/todo.md": LINES}


def test_a_file_that_is_too_long_is_refused_by_every_command(noted: Tool):
    whole = "x" * MAX_DOCUMENT_CHARS
    noted.done("create", path="/memories/long.md", file_text=whole)
    long = "A file has at most 50000 characters and this would have {}; split it into several files"
    assert noted.refused("create", path="/memories/more.md", file_text=whole + "x") == long.format(50_001)
    sent = {"path": "/memories/long.md", "insert_line": 0, "insert_text": "x"}
    assert noted.refused("insert", **sent) == long.format(50_003)
    assert noted.texts()["memories/long.md"] == whole


def test_a_file_with_nul_is_refused(noted: Tool):
    sentence = "A file holds no NUL characters; send the text without them"
    assert noted.refused("create", path="/memories/a.md", file_text="a\0b") == sentence
    assert noted.refused("str_replace", path=TODO, old_str="tea", new_str="\0") == sentence


SECRET = "sk-ant-api03-" + "a1B2c3D4e5" * 9 + "AA"


def test_a_secret_is_redacted_by_every_command_and_the_model_learns_of_it(noted: Tool):
    assert noted.done("create", path="/memories/a.md", file_text=f"Key: {SECRET}").endswith(f"\n{REDACTED}")
    assert noted.done("insert", path=TODO, insert_line=0, insert_text=SECRET).endswith(f"\n{REDACTED}")
    shown = noted.done("str_replace", path=TODO, old_str="Alice", new_str=SECRET)
    assert shown.endswith(f"\n{REDACTED}")
    assert SECRET not in shown
    assert SECRET not in str(noted.texts())
    assert REDACTED not in noted.done("insert", path=TODO, insert_line=0, insert_text="# To do")


def test_what_the_policy_of_the_agent_rejects_is_refused(noted: Tool):
    policy = noted.client.put(f"/agents/{noted.agent}/policy", json={"pii": "reject"}, headers=noted.headers)
    assert policy.status_code == 200, policy.text
    before = noted.texts()
    for command, sent in (
        ("create", {"path": "/memories/a.md", "file_text": "Mail alice@example.org"}),
        ("insert", {"path": TODO, "insert_line": 0, "insert_text": "Mail alice@example.org"}),
    ):
        assert "which this agent's policy rejects; send it without" in noted.refused(command, **sent)
    assert noted.texts() == before
