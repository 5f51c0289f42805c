"""The loaders, on sets of a few lines made on the spot."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from benchmarks.retrieval.data_sets import moment, read_data_set
from souvenir.core.types import MessageRole, PassageKind

Entries = Sequence[Mapping[str, Any]]


def write_set(folder: Path, docs: Entries, queries: Entries) -> Path:
    folder.mkdir()
    for name, entries in (("docs", docs), ("queries", queries)):
        lines = (json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    return folder


def turn(id_: str, text: str, speaker: str, **meta: Any) -> dict[str, Any]:
    return {"id": id_, "text": text, "meta": {"scope": "c/1", "session": "c/1/S1", "speaker": speaker, **meta}}


def question(text: str, relevant: Mapping[str, float], category: str = "single-hop") -> dict[str, Any]:
    return {"id": text, "text": text, "scope": "c/1", "category": category, "relevant": relevant, "meta": {}}


def test_a_turn_of_a_named_speaker_is_a_message_without_the_name_in_its_text(tmp_path):
    folder = write_set(tmp_path / "talk", [turn("t1", "Ann: I moved: at last.", "Ann", turn=1, time="2023-05-08")], [])
    data_set = read_data_set(folder)
    [document] = data_set.documents["c 1"]
    draft = document.message()
    assert data_set.kind is PassageKind.MESSAGE
    assert (draft.role, draft.speaker, draft.content) == (MessageRole.USER, "Ann", "I moved: at last.")
    assert draft.session_id == "c 1 S1"
    assert draft.created_at == datetime(2023, 5, 8, tzinfo=UTC)


def test_a_turn_whose_text_does_not_begin_with_its_speaker_keeps_its_text(tmp_path):
    folder = write_set(tmp_path / "talk", [turn("t1", "I moved.", "Ann", turn=1)], [])
    [document] = read_data_set(folder).documents["c 1"]
    assert document.message().content == "I moved."


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_turn_of_a_user_or_an_assistant_is_a_message_without_a_speaker(tmp_path, role):
    folder = write_set(tmp_path / "chat", [turn("t1", f"{role}: hello", role, turn=0)], [])
    [document] = read_data_set(folder).documents["c 1"]
    draft = document.message()
    assert (draft.role, draft.speaker, draft.content) == (MessageRole(role), None, f"{role}: hello")


def test_a_document_without_a_turn_is_a_memory_of_its_session_or_else_of_its_scope(tmp_path):
    docs = [
        turn("f1", "Ann moved.", "Ann", time="2023-05-08T13:56:00"),
        {"id": "d1", "text": "x", "meta": {"scope": "c/1"}},
    ]
    data_set = read_data_set(write_set(tmp_path / "facts", docs, []))
    fact, plain = (document.memory() for document in data_set.documents["c 1"])
    assert data_set.kind is PassageKind.MEMORY
    assert (fact.text, fact.source, fact.document_at) == (
        "Ann moved.",
        "c/1/S1",
        datetime(2023, 5, 8, 13, 56, tzinfo=UTC),
    )
    assert (plain.source, plain.document_at) == ("c 1", None)
    assert data_set.sessions == {"f1": "c/1/S1"}


def test_questions_that_nothing_answers_and_adversarial_ones_are_left_out(tmp_path):
    queries = [
        question("Who moved?", {"t1": 1, "t2": 0}),
        question("Who sang?", {}),
        question("Who danced?", {"t1": 0}),
        question("Did Bob move?", {"t1": 1}, "adversarial"),
    ]
    data_set = read_data_set(write_set(tmp_path / "talk", [turn("t1", "Ann: I moved.", "Ann", turn=1)], queries))
    assert [(one.text, one.relevant) for one in data_set.questions] == [("Who moved?", {"t1": 1.0})]


def test_a_set_of_messages_and_memories_is_refused(tmp_path):
    docs = [turn("t1", "Ann: I moved.", "Ann", turn=1), {"id": "d1", "text": "x", "meta": {"scope": "c/1"}}]
    with pytest.raises(ValueError, match="a session and a turn"):
        read_data_set(write_set(tmp_path / "mixed", docs, []))


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2024-03-15", datetime(2024, 3, 15, tzinfo=UTC)),
        ("2024-03-15T10:00:00+02:00", datetime.fromisoformat("2024-03-15T10:00:00+02:00")),
        ("2024年04月01日 周一 08:12", datetime(2024, 4, 1, 8, 12, tzinfo=UTC)),
        ("2024年4月1日", datetime(2024, 4, 1, tzinfo=UTC)),
        ("last spring", None),
        (None, None),
    ],
)
def test_times_are_read_or_left_out(written, read):
    assert moment(written) == read
