"""Data of Locrits, in the formats in which they stored it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from souvenir_client import Souvenir
from souvenir_client.errors import NotImportable
from souvenir_client.importing import Kind, MemoryRecord, detect, import_file
from souvenir_client.importing.locrit import NAMED_IN_VAIN, NO_MEMORY, NO_MESSAGE, UNREADABLE
from tests.client.importing.files import json_file, json_lines, records, skipped, usable


def message(name: str, content: str, at: str, session: str = "web_bob_pixie", **more: Any) -> dict[str, Any]:
    said = {"id": name, "role": "user", "content": content, "session_id": session, "user_id": "bob"}
    return {**said, "timestamp": at, "metadata": {}, **more}


def simple_file(folder: Path) -> Path:
    kept = folder / "pixie" / "simple_file"
    for name in ("messages", "sessions"):
        (kept / name).mkdir(parents=True)
    json_file(kept / "index.json", {"total_messages": 3})
    json_file(kept / "messages" / "a.json", message("a", "Later said, first listed.", "2025-01-01T10:00:09"))
    json_file(kept / "messages" / "b.json", message("b", "Second.", "2025-01-01T10:00:01", role="assistant"))
    json_file(kept / "messages" / "c.json", message("c", "Not listed.", "2025-01-01T10:00:02"))
    (kept / "messages" / "d.json").write_text("{")
    session = {"id": "web_bob_pixie", "message_ids": ["a", "b", "gone"], "created_at": "2025-01-01T09:59:59.5"}
    json_file(kept / "sessions" / "web_bob_pixie.json", session)
    return folder / "pixie"


def plaintext(folder: Path) -> Path:
    memories = folder / "plaintext" / "memories"
    memories.mkdir(parents=True)
    head = {"id": "k1", "created_at": "2025-01-02T03:04:05", "importance": 0.8, "tags": ["pets"], "metadata": {"id": 3}}
    (memories / "k1.txt").write_text(
        f"=== MEMORY METADATA ===\n{json.dumps(head, indent=2)}\n=== CONTENT ===\nA cat.\n"
    )
    (memories / "k2.txt").write_text("A dog.")
    (memories / "k3.txt").write_bytes(b"\xff")
    return folder


def test_a_folder_of_files_becomes_sessions_in_their_stated_order(tmp_path):
    folder = simple_file(tmp_path)
    assert detect(folder) is Kind.LOCRIT
    for path in (folder, folder / "simple_file"):
        found = records(Kind.LOCRIT, path)
        [talk] = usable(found)
        assert (talk.session_id, talk.user, talk.started_at) == (
            "web_bob_pixie",
            "bob",
            "2025-01-01T09:59:59.500000+00:00",
        )
        assert [(turn.key, turn.role) for turn in talk.turns] == [("a", "user"), ("b", "assistant"), ("c", "user")]
        assert skipped(found) == [("message gone", NAMED_IN_VAIN), ("d.json", NO_MESSAGE)]


def test_texts_with_a_header_become_memories(tmp_path):
    found = records(Kind.LOCRIT, plaintext(tmp_path))
    [memory] = usable(found)
    assert isinstance(memory, MemoryRecord)
    assert (memory.text, memory.source, memory.key, list(memory.tags)) == ("A cat.", "locrit", "k1", ["pets"])
    assert (memory.metadata, memory.created_at) == (
        {"locrit_id": 3, "importance": 0.8},
        "2025-01-02T03:04:05.000000+00:00",
    )
    assert skipped(found) == [("k2.txt", NO_MEMORY), ("k3.txt", UNREADABLE)]


LISTED = [message("a", "One.", "2025-01-01T10:00:00"), message("b", "Two.", "2025-01-01T10:00:01", session="other")]


@pytest.mark.parametrize(
    ("said", "sessions"),
    [
        (LISTED, ["web_bob_pixie", "other"]),
        ({"messages": LISTED, "session_id": "unused"}, ["web_bob_pixie", "other"]),
        ({"session_id": "s", "messages": [{"role": "user", "content": "One."}], "total": 1}, ["s"]),
    ],
    ids=["list", "messages", "answer"],
)
def test_messages_of_one_file_become_sessions(tmp_path, said, sessions):
    path = json_file(tmp_path / "messages.json", said)
    assert detect(path) is Kind.LOCRIT
    assert [one.session_id for one in usable(records(Kind.LOCRIT, path))] == sessions


def test_messages_may_be_lines_with_metadata_as_text(tmp_path):
    path = json_lines(
        tmp_path / "m.jsonl", [message("a", "One.", "2025-01-01", metadata='{"mood": "good"}'), {"id": 1}]
    )
    assert detect(path) is Kind.LOCRIT
    found = records(Kind.LOCRIT, path)
    [talk] = usable(found)
    assert talk.turns[0].metadata == {"mood": "good"}
    assert skipped(found)[0] == ("line 2", NO_MESSAGE)


def test_a_file_without_data_of_a_locrit_is_refused(tmp_path):
    with pytest.raises(NotImportable, match="neither simple_file"):
        records(Kind.LOCRIT, tmp_path)
    with pytest.raises(NotImportable, match="no list of messages"):
        records(Kind.LOCRIT, json_file(tmp_path / "a.json", {"messages": 3}))


def test_locrit_data_is_imported_once_with_times_and_order(service, tmp_path):
    folder = simple_file(tmp_path)
    plaintext(folder)
    with Souvenir(service.url) as client:
        first = import_file(client, folder, agent="pixie")
        again = import_file(client, folder, agent="pixie")
        [session] = client.sessions.list("pixie").sessions
        messages = client.sessions.messages("pixie", "web_bob_pixie")
        [memory] = client.in_namespace("pixie").memories.list().memories
    assert (first.messages.imported, first.memories.imported, first.skipped_count) == (3, 1, 4)
    assert (again.imported, again.messages.unchanged, again.memories.unchanged) == (0, 3, 1)
    assert (session.user, session.started_at[:19]) == ("bob", "2025-01-01T09:59:59")
    assert [(one.role, one.content, one.created_at[17:19]) for one in messages] == [
        ("user", "Later said, first listed.", "09"),
        ("assistant", "Second.", "01"),
        ("user", "Not listed.", "02"),
    ]
    assert (memory.text, memory.tags) == ("A cat.", ["pets"])
