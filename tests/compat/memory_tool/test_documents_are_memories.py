"""Documents are memories of their agent: searches find them, and what happens to a memory happens to its file."""

from __future__ import annotations

import json

import pytest

from souvenir.core.labels import PROTECTED
from tests.compat.memory_tool.conftest import Tool

FILE = "/memories/trips/lisbon.md"
TEXT = "Alice flies to Lisbon on the ninth of May with a folding bicycle.\n"
GONE = f"The path {FILE} does not exist. Please provide a valid path."


@pytest.fixture
def written(tool: Tool) -> Tool:
    tool.done("create", path=FILE, file_text=TEXT)
    return tool


def test_a_search_finds_what_was_written_and_what_was_edited(written: Tool):
    written.done("str_replace", path=FILE, old_str="folding bicycle", new_str="surfboard")
    [found] = written.post("/search", query="surfboard", k=5)["results"]
    assert (found["source"], found["origin_class"]) == ("memories/trips/lisbon.md", "assistant")
    items = written.post(f"/agents/{written.agent}/search", query="surfboard")["results"]
    assert [item["kind"] for item in items] == ["memory"]
    assert written.post("/search", query="folding bicycle", k=5)["results"][0]["text"] == found["text"]


def test_a_search_below_a_folder_follows_a_rename(written: Tool):
    written.done("rename", old_path="/memories/trips", new_path="/memories/past")
    for folder, count in (("memories/trips", 0), ("memories/past", 1)):
        found = written.post("/search", query="Lisbon", source_prefix=folder)
        assert found["count"] == count


@pytest.mark.parametrize("gone", ["delete", "archive", "erase"])
def test_a_memory_that_goes_takes_its_file_along(written: Tool, gone: str):
    [memory] = written.memories()
    if gone == "delete":
        headers = {**written.headers, "X-Namespace": written.agent}
        assert written.client.delete(f"/memory/{memory['id']}", headers=headers).status_code == 200
    elif gone == "archive":
        written.post("/memory/archive-batch", ids=[memory["id"]])
    else:
        written.post("/erase", selector={"agent_name": written.agent, "memory_id": memory["id"]}, confirm=True)
    assert written.refused("view", path=FILE) == GONE
    assert written.refused("str_replace", path=FILE, old_str="Alice", new_str="Bob") == GONE
    written.done("create", path=FILE, file_text="New")
    assert written.done("view", path=FILE).endswith("     1\tNew")


def test_a_deleted_file_leaves_no_text_in_the_history(written: Tool):
    [memory] = written.memories()
    written.done("delete", path="/memories/trips")
    history = written.get(f"/memory/{memory['id']}/history")
    assert history["deleted"] is True
    assert "Lisbon" not in json.dumps(history)


def test_a_file_that_a_client_edits_as_a_memory_is_shown_as_edited(written: Tool):
    [memory] = written.memories()
    headers = {**written.headers, "X-Namespace": written.agent}
    written.client.patch(f"/memory/{memory['id']}", json={"text": "Edited\n", "add_tags": ["trip"]}, headers=headers)
    assert written.done("view", path=FILE).endswith("     1\tEdited\n     2\t")
    written.done("insert", path=FILE, insert_line=1, insert_text="again")
    [memory] = written.memories()
    assert (memory["text"], memory["tags"]) == ("Edited\nagain\n", ["trip"])


def test_files_of_the_same_text_stay_as_they_are(written: Tool):
    for number in range(3):
        written.done("create", path=f"/memories/copy-{number}.md", file_text=TEXT)
    before = written.texts()
    assert written.post("/memory/deduplicate", threshold=0.9, dry_run=False)["removed"] == 0
    assert written.texts() == before


def test_a_file_of_the_same_text_hides_no_duplicate(written: Tool):
    first = written.post("/memory/add", text=TEXT, source="notes")["id"]
    written.done("create", path="/memories/again.md", file_text=TEXT)
    for _ in range(2):
        again = written.post("/memory/add", text=TEXT, source="notes", on_duplicate="skip")
        assert (again["action"], again["blocked_by"]) == ("skipped", first)
        batch = {"text": TEXT, "source": "notes"}
        assert written.post("/memory/add-batch", memories=[batch], deduplicate=True)["ids"] == []


@pytest.mark.parametrize("on_duplicate", ["skip", "supersede", "batch"])
def test_a_memory_of_the_same_text_neither_replaces_a_file_nor_gives_way_to_it(written: Tool, on_duplicate: str):
    if on_duplicate == "batch":
        batch = {"text": TEXT, "source": "memories/trips/lisbon.md"}
        assert len(written.post("/memory/add-batch", memories=[batch], deduplicate=True)["ids"]) == 1
    else:
        added = written.post("/memory/add", text=TEXT, source="notes", on_duplicate=on_duplicate)
        assert added["action"] == "added"
    written.post("/memory/deduplicate", threshold=0.9, dry_run=False)
    assert written.done("view", path=FILE).endswith(f"     1\t{TEXT.strip()}\n     2\t")


def test_a_smart_import_of_a_similar_text_does_not_change_a_file(written: Tool):
    line = {"text": TEXT.replace("ninth", "tenth"), "source": "notes", "created_at": "2099-01-01T00:00:00Z"}
    headers = {**written.headers, "X-Namespace": written.agent, "Content-Type": "application/x-ndjson"}
    done = written.client.post("/import?strategy=smart&no_backup=true", content=json.dumps(line), headers=headers)
    assert done.status_code == 200, done.text
    assert written.texts() == {"memories/trips/lisbon.md": TEXT, "notes": line["text"]}


def test_a_smart_import_finds_the_duplicate_beside_a_file_of_the_same_text(written: Tool):
    written.post("/memory/add", text=TEXT, source="notes")
    written.done("create", path="/memories/again.md", file_text=TEXT)
    line = {"text": TEXT, "source": "notes", "created_at": "2020-01-01T00:00:00Z"}
    headers = {**written.headers, "X-Namespace": written.agent, "Content-Type": "application/x-ndjson"}
    done = written.client.post("/import?strategy=smart&no_backup=true", content=json.dumps(line), headers=headers)
    assert done.status_code == 200, done.text
    assert len(written.memories()) == 3


def test_a_file_is_protected_from_learning(written: Tool):
    [found] = written.post("/search", query="Lisbon")["results"]
    assert found[PROTECTED] is True


def test_an_export_carries_files_to_another_agent(written: Tool):
    headers = {**written.headers, "X-Namespace": written.agent}
    exported = written.client.get("/export", headers=headers).content
    other = Tool(written.client, f"{written.agent}-copy", written.headers)
    sent = {**written.headers, "X-Namespace": other.agent, "Content-Type": "application/x-ndjson"}
    assert written.client.post("/import?no_backup=true", content=exported, headers=sent).status_code == 200
    other.done("str_replace", path=FILE, old_str="Alice", new_str="Bob")
    assert other.texts() == {"memories/trips/lisbon.md": TEXT.replace("Alice", "Bob")}


def test_every_command_that_changes_a_file_is_an_event(written: Tool):
    written.done("insert", path=FILE, insert_line=0, insert_text="# Trip")
    written.done("rename", old_path=FILE, new_path="/memories/b.md")
    written.done("delete", path="/memories/b.md")
    events = written.get("/events/recent")["events"]
    assert len([one for one in events if "memory" in json.dumps(one)]) >= 4


@pytest.mark.parametrize(
    ("command", "sent", "after"),
    [
        ("create", {"path": "/memories/b.md", "file_text": "b"}, {"memories/b.md": "b"}),
        ("insert", {"path": FILE, "insert_line": 0, "insert_text": "# Trip"}, {FILE[1:]: f"# Trip\n{TEXT}"}),
        (
            "str_replace",
            {"path": FILE, "old_str": "Alice", "new_str": "Alice and Alice"},
            {FILE[1:]: TEXT.replace("Alice", "Alice and Alice")},
        ),
        ("rename", {"old_path": FILE, "new_path": "/memories/c.md"}, {"memories/c.md": TEXT}),
        ("delete", {"path": FILE}, {}),
    ],
)
def test_a_repeated_call_with_its_key_is_done_once_and_answered_the_same(written: Tool, command, sent, after):
    headers = {**written.headers, "Idempotency-Key": f"{written.agent}-{command}"}
    keyed = Tool(written.client, written.agent, headers)
    first, again = (keyed.send(command, **sent) for _ in range(2))
    assert (first.status_code, first.json()["is_error"]) == (200, False)
    assert again.json() == first.json()
    assert [answer.headers.get("Idempotency-Replayed") for answer in (first, again)] == [None, "true"]
    assert {FILE[1:]: TEXT, **after} == {FILE[1:]: TEXT, **written.texts()}
    assert written.texts().items() >= after.items()
    reused = keyed.send("delete", path="/memories/other.md")
    assert (reused.status_code, reused.json()["code"]) == (422, "idempotency_key_reused")
