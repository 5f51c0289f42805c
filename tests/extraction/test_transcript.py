"""Turns of transcripts in the forms that clients send, with who says them, when, and where they stand."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from souvenir.extraction.transcript import read_transcript
from souvenir.extraction.turns import Transcript, TurnRole

NOON = datetime(2024, 3, 15, 12, tzinfo=UTC)
USER, ASSISTANT, TOOL, SYSTEM, UNKNOWN = TurnRole


def read(text: str, document_at: datetime | None = None) -> Transcript:
    return read_transcript(text, document_at=document_at)


def said(transcript: Transcript) -> list[tuple[TurnRole, str | None, str]]:
    return [(turn.role, turn.speaker, turn.text) for turn in transcript.turns]


def at(year: int, month: int, day: int, hour: int = 0, minute: int = 0) -> datetime:
    return datetime(year, month, day, hour, minute, tzinfo=UTC)


TALK = [(USER, None, "I moved to Lisbon.\nNote: by train."), (ASSISTANT, None, "Noted."), (USER, None, "Thanks")]


@pytest.mark.parametrize(
    "text",
    [
        "User: I moved to Lisbon.\nNote: by train.\nAssistant: Noted.\nUser: Thanks",
        "Human: I moved to Lisbon.\nNote: by train.\n\nAI: Noted.\n\nHuman: Thanks\n",
        "user: I moved to Lisbon.\nNote: by train.\nassistant: Noted.\nuser: Thanks",
        "USER:\nI moved to Lisbon.\nNote: by train.\nASSISTANT:\nNoted.\nUSER:\nThanks",
        "**User**: I moved to Lisbon.\nNote: by train.\n\n**Assistant**: Noted.\n\n**User**: Thanks",
        "**User:** I moved to Lisbon.\nNote: by train.\n\n**Assistant:** Noted.\n\n**User:** Thanks",
        "### User\n\nI moved to Lisbon.\nNote: by train.\n\n### Assistant\n\nNoted.\n\n### User\n\nThanks\n",
        "## Human:\nI moved to Lisbon.\nNote: by train.\n## Claude:\nNoted.\n## Human:\nThanks\n",
        "[2024-03-15 10:00] User: I moved to Lisbon.\nNote: by train.\n[10:01] Assistant: Noted.\n[10:02] User: Thanks",
    ],
)
def test_roles_open_turns_however_their_lines_are_written(text: str):
    assert said(read(text)) == TALK
    windows = text.replace("\n", "\r\n")
    assert [(role, name, words.replace("\r", "")) for role, name, words in said(read(windows))] == TALK


@pytest.mark.parametrize(
    "value",
    [
        [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"}],
        {"messages": [{"role": "human", "content": "hi"}, {"role": "ai", "content": "yo"}]},
        [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "yo"}],
        [{"role": "user", "content": [{"type": "text", "text": "hi"}]}, {"role": "model", "parts": [{"text": "yo"}]}],
        [{"author": {"role": "user"}, "content": {"parts": ["hi"]}}, {"author": {"role": "assistant"}, "text": "yo"}],
        [{"type": "user", "message": {"role": "user", "content": "hi"}}, {"type": "assistant", "message": "yo"}],
    ],
)
def test_messages_in_json_are_turns_as_a_list_and_a_line_each(value: Any):
    wanted = [(USER, None, "hi"), (ASSISTANT, None, "yo")]
    assert said(read(json.dumps(value))) == said(read(json.dumps(value, indent=2))) == wanted
    messages = value["messages"] if isinstance(value, dict) else value
    assert said(read("\n".join(map(json.dumps, messages)))) == wanted


# --- properties -----------------------------------------------------------------------------------------------------

_PIECES = st.sampled_from(
    [
        *(
            "\n",
            "\r\n",
            "\u2028",
            " ",
            "User: ",
            "Assistant:",
            "**User**: ",
            "[2024-03-15 10:00] Bob: ",
            "### User",
            "Alice: ",
        ),
        *(
            "<recalled_memory>",
            "</recalled_memory>",
            "<system-reminder>",
            "</system-reminder>",
            "<memory>",
            "</memory>",
        ),
        *(
            "```",
            "```py",
            "`",
            "{",
            "}",
            "[",
            '"role"',
            ':"user"',
            '{"role":"user","content":"x"}',
            "\\",
            "\\u00e9",
            "\x1b[0m",
        ),
        *("Session 3 (8 May 2023)", "## Relevant Memories\n\n- 2023-05-08: x", "@@ -1 +1 @@", "word ", "- "),
    ]
)
ANY_TEXT = st.lists(st.one_of(_PIECES, st.text(max_size=6)), max_size=25).map("".join)


@given(ANY_TEXT)
def test_any_text_is_read_and_every_piece_stands_at_its_offsets(text: str):
    transcript = read(text, NOON)
    spans = [(piece.start, piece.end) for turn in transcript.turns for piece in turn.pieces]
    spans += [(part.start, part.end) for part in transcript.removed]
    done = 0
    for start, end in sorted(spans):
        assert done <= start < end <= len(text)
        done = end
    for piece in (piece for turn in transcript.turns for piece in turn.pieces):
        assert text[piece.start : piece.end] == piece.text or "\\" in text


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), st.text()), min_size=1), st.booleans())
def test_in_json_every_character_of_a_message_stands_where_its_piece_says(
    turns: list[tuple[str, str]], ascii_only: bool
):
    text = json.dumps([{"role": role, "content": words} for role, words in turns], ensure_ascii=ascii_only)
    for turn in read(text).turns:
        for piece in turn.pieces:
            raw = "".join(text[piece.offset(at) : piece.offset(at + 1)] for at in range(len(piece.text)))
            assert raw == text[piece.start : piece.end]
            assert json.loads(f'"{raw}"') == piece.text
