"""A transcript as messages: text, speaker and time of each turn, and nothing else."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from souvenir.conversations.transcript_sync import MAX_CONTENT_CHARS, MAX_TURNS, message_drafts
from souvenir.core.errors import InvalidRequest
from souvenir.core.text import fenced
from souvenir.core.types import MessageRole
from souvenir.learning.transcripts.transcript import read_transcript
from souvenir.store.messages.messages import MessageDraft

SAID_AT = datetime(2025, 4, 2, 9, 30, tzinfo=UTC)


def drafts(text: str, *, user: str | None = None) -> list[MessageDraft]:
    return message_drafts(read_transcript(text, document_at=SAID_AT), session_id="s1", user=user)


def test_turns_become_messages_with_order_roles_names_and_times():
    text = json.dumps(
        [
            {"role": "user", "name": "Ann", "content": "We moved to Postgres.", "timestamp": "2025-04-01T08:00:00Z"},
            {"role": "assistant", "content": "Noted."},
        ]
    )
    assert drafts(text, user="ann") == [
        MessageDraft(
            MessageRole.USER,
            "We moved to Postgres.",
            session_id="s1",
            user="ann",
            speaker="Ann",
            created_at=datetime(2025, 4, 1, 8, 0, tzinfo=UTC),
        ),
        MessageDraft(MessageRole.ASSISTANT, "Noted.", session_id="s1", user="ann", created_at=SAID_AT),
    ]


def test_turns_of_tools_and_system_are_not_stored():
    text = json.dumps(
        [
            {"role": "system", "content": "You are a helpful assistant."},
            {"role": "user", "content": "How warm is it?"},
            {"role": "tool", "content": "It is 21 degrees in Bern."},
        ]
    )
    assert [one.content for one in drafts(text)] == ["How warm is it?"]


def test_recalled_text_is_not_stored_as_something_said():
    recalled = fenced("- Ann lives in Bern.")
    [one] = drafts(f"User: {recalled}\nWhere should I eat tonight?\n")
    assert one.content == "Where should I eat tonight?"
    assert drafts(f"User: {recalled}") == []


def test_a_text_without_roles_is_attributed_to_the_user():
    [one] = drafts("The billing service moved to Postgres 17.")
    assert (one.role, one.speaker) == (MessageRole.USER, None)


def test_a_long_turn_becomes_several_messages_that_end_at_words():
    words = " ".join(f"word{number}" for number in range(12_000))
    parts = [one.content for one in drafts(f"User: {words}")]
    assert len(parts) == 3
    assert max(map(len, parts)) <= MAX_CONTENT_CHARS
    assert " ".join(parts) == words
    assert len(drafts("User: " + "\u8a9e" * (MAX_CONTENT_CHARS + 1))) == 2


def test_an_invalid_speaker_name_is_shortened_or_dropped():
    text = json.dumps([{"role": "user", "name": "A\u200bn" + "n" * 200, "content": "Hello."}])
    [one] = drafts(text)
    assert one.speaker == "An" + "n" * 98


def test_more_turns_than_can_be_stored_at_once_are_refused():
    turns = [{"role": "user", "content": f"Number {number}."} for number in range(MAX_TURNS + 1)]
    assert len(drafts(json.dumps(turns[:-1]))) == MAX_TURNS
    with pytest.raises(InvalidRequest, match="send it in parts"):
        drafts(json.dumps(turns))
