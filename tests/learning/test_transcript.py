"""Parsing transcripts in the formats that clients send: role, time and position of each turn."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from souvenir.core.types import OriginClass
from souvenir.learning.transcripts.transcript import read_transcript
from souvenir.learning.transcripts.turns import Transcript, TurnRole

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
def test_roles_open_turns_in_every_style(text: str):
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
def test_messages_in_a_json_list_or_json_lines_are_turns(value: Any):
    wanted = [(USER, None, "hi"), (ASSISTANT, None, "yo")]
    assert said(read(json.dumps(value))) == said(read(json.dumps(value, indent=2))) == wanted
    messages = value["messages"] if isinstance(value, dict) else value
    assert said(read("\n".join(map(json.dumps, messages)))) == wanted


def test_non_text_parts_are_removed_and_results_belong_to_the_tool():
    text = json.dumps(
        [
            {
                "role": "user",
                "content": [{"type": "text", "text": "Look it up"}, {"type": "image", "source": {"data": "QUJD"}}],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm"},
                    {"type": "text", "text": "Sure"},
                    {"type": "tool_use", "id": "1", "name": "search", "input": {"q": "x"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "A page"}]}
                ],
            },
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "2", "function": {"name": "f", "arguments": "{}"}}],
            },
            {"role": "tool", "tool_call_id": "2", "content": "Another page"},
        ]
    )
    transcript = read(text)
    assert said(transcript) == [
        (USER, None, "Look it up"),
        (ASSISTANT, None, "Sure"),
        (TOOL, None, "A page"),
        (TOOL, None, "Another page"),
    ]
    assert [part.kind.value for part in transcript.removed] == ["noise", "reasoning", "tool", "tool"]
    assert all(text[part.start : part.end] == part.text for part in transcript.removed)


def test_json_lines_end_with_line_feeds_only():
    messages = [{"role": "user", "content": f"one\u2028two\x85three\u2029{number}"} for number in range(3)]
    transcript = read("\r\n".join(json.dumps(message, ensure_ascii=False) for message in messages))
    assert said(transcript) == said(read(json.dumps(messages)))
    assert not transcript.removed


def test_broken_json_lines_of_a_truncated_transcript_are_removed():
    lines = [json.dumps({"role": "user", "content": f"number {number}"}) for number in range(4)]
    transcript = read(lines[0][9:] + "\n" + "\n".join(lines) + "\n" + lines[0][:12])
    assert [turn.text for turn in transcript.turns] == [f"number {number}" for number in range(4)]
    assert [part.kind.value for part in transcript.removed] == ["noise", "noise"]


def test_speakers_are_recognised_by_name_and_labels_are_not():
    text = "Caroline: Hey Mel!\nTodo: milk\nMelanie: Hi.\nNote: late\nCaroline: I moved.\nMelanie: Wow.\nNote: soon"
    assert said(read(text)) == [
        (USER, "Caroline", "Hey Mel!\nTodo: milk"),
        (USER, "Melanie", "Hi.\nNote: late"),
        (USER, "Caroline", "I moved."),
        (USER, "Melanie", "Wow.\nNote: soon"),
    ]
    assert said(read("Alice (user): hi\nClaude (assistant): yo")) == [
        (USER, "Alice", "hi"),
        (ASSISTANT, "Claude", "yo"),
    ]
    assert said(read("Alice: I live in Rome.\nAssistant: Noted."))[0] == (USER, "Alice", "I live in Rome.")


@pytest.mark.parametrize(
    "inside",
    [
        "they wrote:\nBob: hi\nAnn: yo\nBob: bye\nAnn: bye",
        "see\n```\nUser: hi\nAssistant: yo\n```\nok",
        "the log says\n**Assistant**: yo\nand more",
        "set\nuser: admin\nsystem: linux",
        "at\nhttp://x.example\n10:30 is fine\nC:\\\\Users",
    ],
)
def test_a_quoted_line_opens_no_turn(inside: str):
    text = f"User: {inside}\nAssistant: Noted.\nUser: Thanks\nAssistant: Sure"
    assert said(read(text))[0] == (USER, None, inside)
    assert len(read(text).turns) == 4


@pytest.mark.parametrize(
    "text", ["Dear diary,\nI moved to Rome.\n", "Note: a\nPros: b\nNote: c\nPros: d", '{"a": 1}', "[1, 2]", "x"]
)
def test_a_text_without_turns_is_a_document(text: str):
    (turn,) = read(text, NOON).turns
    assert (turn.role, turn.speaker, turn.at, turn.text) == (UNKNOWN, None, NOON, text.strip())
    assert turn.origin == OriginClass.DOCUMENT


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_transcript_is_empty(text: str):
    assert read(text).is_empty


def test_the_origin_of_a_turn_follows_from_its_role():
    text = "System: a\nUser: b\nAssistant: c\nTool: d"
    origins = [turn.origin for turn in read(text).turns]
    assert origins == [OriginClass.INFERRED, OriginClass.USER, OriginClass.ASSISTANT, OriginClass.TOOL]


# --- when -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("heading", "day"),
    [
        ("DATE: 1:56 pm on 8 May, 2023", at(2023, 5, 8, 13, 56)),
        ("Session 3 (8 May 2023)", at(2023, 5, 8)),
        ("## Session 12 - 2023-05-08 10:30", at(2023, 5, 8, 10, 30)),
        ("--- May 8th, 2023 ---", at(2023, 5, 8)),
        ("Date: 2023-05-08T10:30:00+02:00", at(2023, 5, 8, 8, 30)),
        ("Date: 25/05/2023", at(2023, 5, 25)),
        ("Date: 08/05/2023", NOON),
        ("Session 3 (99 May 2023)", NOON),
    ],
)
def test_the_heading_of_a_session_dates_what_follows_it(heading: str, day: datetime):
    text = f"{heading}\nUser: I moved.\nAssistant: Noted."
    assert [turn.at for turn in read(text, NOON).turns][-2:] == [day, day]


def test_timestamps_precede_headings_and_a_time_has_the_day_before_it():
    text = (
        "Session 1 (8 May 2023)\n[10:00] Ann: a\n[10:05] Bob: b\n"
        "Session 2 (9 May 2023)\n[23:59] Ann: c\n[2023-05-11 00:01] Bob: d\n[00:02] Ann: e"
    )
    assert [turn.at for turn in read(text, NOON).turns] == [
        *(at(2023, 5, 8, 10, 0), at(2023, 5, 8, 10, 5), at(2023, 5, 9, 23, 59)),
        *(at(2023, 5, 11, 0, 1), at(2023, 5, 11, 0, 2)),
    ]


def test_a_date_within_a_message_dates_nothing():
    text = "User: the mail says\nDate: 2020-01-01\nwhat now\nAssistant: Wait."
    assert [turn.at for turn in read(text, NOON).turns] == [NOON, NOON]
    assert "Date: 2020-01-01" in read(text).turns[0].text


@pytest.mark.parametrize(
    "stamp", ["2024-03-15T10:00:00Z", "2024-03-15 10:00", 1710496800, 1710496800000, "15 March 2024 10:00"]
)
def test_times_of_messages_in_json_are_read_as_text_and_as_numbers(stamp: Any):
    for name in ("timestamp", "created_at"):
        (turn,) = read(json.dumps([{"role": "user", "content": "hi", name: stamp}]), NOON).turns
        assert turn.at == at(2024, 3, 15, 10)


@pytest.mark.parametrize("stamp", ["soon", "", None, 1e300, float("inf"), True, {"a": 1}, "2024-99-99"])
def test_a_time_that_cannot_be_read_is_none(stamp: Any):
    assert [
        turn.at for turn in read(json.dumps([{"role": "user", "content": "hi", "timestamp": stamp}]), NOON).turns
    ] == [NOON]


# --- size -------------------------------------------------------------------------------------------------------------


def test_one_line_of_a_hundred_thousand_characters_is_one_turn():
    words = "word " * 24_000
    assert said(read(f"User: {words}")) == [(USER, None, words.strip())]


def test_thousands_of_empty_turns_are_parsed():
    transcript = read("User:\n" * 15_000 + "Assistant:")
    assert len(transcript.turns) == 15_001
    assert transcript.is_empty


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
def test_any_text_is_parsed_and_every_piece_is_at_its_offsets(text: str):
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
def test_in_json_every_character_is_at_its_offset(turns: list[tuple[str, str]], ascii_only: bool):
    text = json.dumps([{"role": role, "content": words} for role, words in turns], ensure_ascii=ascii_only)
    for turn in read(text).turns:
        for piece in turn.pieces:
            raw = "".join(text[piece.offset(at) : piece.offset(at + 1)] for at in range(len(piece.text)))
            assert raw == text[piece.start : piece.end]
            assert json.loads(f'"{raw}"').replace("\0", "\ufffd") == piece.text
