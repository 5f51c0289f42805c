"""Reading a transcript continues at the last position, even if its file was changed."""

from __future__ import annotations

import json

import pytest

from souvenir_client.hooks.transcripts import MAX_LINE_BYTES, WINDOW_TURNS, Cursor, Transcript

SESSION = "session"


def line(number: int, text: str = "", uuid: str = "") -> bytes:
    content = text or f"turn {number}"
    entry = {"type": "user", "uuid": uuid or f"uuid-{number:04}", "message": {"role": "user", "content": content}}
    return json.dumps(entry).encode() + b"\n"


@pytest.fixture
def path(tmp_path):
    return tmp_path / f"{SESSION}.jsonl"


def read(path, cursor=Cursor()):  # noqa: B008 - a frozen value
    """All that follows the cursor, and the cursor behind it."""
    texts = []
    with Transcript(path, SESSION) as transcript:
        while not (window := transcript.window(cursor)).is_end:
            texts += [turn.text for turn in window.turns]
            cursor = window.after
    return texts, cursor


def test_processed_lines_are_not_read_again(path):
    path.write_bytes(line(1) + line(2))
    texts, cursor = read(path)
    assert texts == ["turn 1", "turn 2"]
    with path.open("ab") as file:
        file.write(line(3))
    assert read(path, cursor)[0] == ["turn 3"]


def test_an_incomplete_line_is_read_once_it_is_complete(path):
    path.write_bytes(line(1) + line(2)[:20])
    texts, cursor = read(path)
    assert texts == ["turn 1"]
    path.write_bytes(line(1) + line(2))
    assert read(path, cursor)[0] == ["turn 2"]


def test_the_next_window_starts_where_the_last_one_ended(path):
    path.write_bytes(b"".join(line(number) for number in range(2 * WINDOW_TURNS + 1)))
    with Transcript(path, SESSION) as transcript:
        first = transcript.window(Cursor())
        again = transcript.window(Cursor(), until=first.after.offset)
    assert len(first.turns) == WINDOW_TURNS
    assert again == first
    assert read(path)[0] == [f"turn {number}" for number in range(2 * WINDOW_TURNS + 1)]


def test_a_duplicate_line_is_one_turn(path):
    path.write_bytes(line(1) + line(1) + line(2))
    assert read(path)[0] == ["turn 1", "turn 2"]


def test_an_oversized_line_is_skipped(path):
    path.write_bytes(line(1) + line(2, "x" * (MAX_LINE_BYTES + 1)) + line(3))
    assert read(path)[0] == ["turn 1", "turn 3"]


@pytest.mark.parametrize(
    "rewritten",
    [line(1) + line(2, "was replaced", "uuid-0009"), line(1), b"", line(0) + line(1) + line(2)],
    ids=["a line taken back", "cut", "emptied", "copied with more before"],
)
def test_a_rewritten_file_is_detected(path, rewritten):
    path.write_bytes(line(1) + line(2))
    _, cursor = read(path)
    path.write_bytes(rewritten)
    with Transcript(path, SESSION) as transcript:
        assert not transcript.holds(cursor)


def test_the_position_in_a_rewritten_file_is_found_by_the_last_turn(path):
    path.write_bytes(line(0) + line(1) + line(2) + line(3))
    with Transcript(path, SESSION) as transcript:
        place = transcript.behind("uuid-0002")
        assert place is not None
        after = transcript.window(place)
        assert transcript.behind("uuid-0099") is None
        others = transcript.window(transcript.before_others({"uuid-0000", "uuid-0001", "uuid-0003"}))
    assert [turn.text for turn in after.turns] == ["turn 3"]
    assert [turn.text for turn in others.turns] == ["turn 2", "turn 3"]


def test_the_last_text_of_a_role_is_searched_from_the_end(path):
    answer = {"type": "assistant", "message": {"content": [{"type": "text", "text": "Done."}]}}
    path.write_bytes(b"".join(line(number) for number in range(10_000)) + json.dumps(answer).encode() + b"\n")
    with Transcript(path, SESSION) as transcript:
        assert (transcript.last("user"), transcript.last("assistant")) == ("turn 9999", "Done.")


@pytest.mark.parametrize("damaged", [None, {}, {"offset": "1", "tail": "", "uuid": ""}, {"offset": 1}, [1], "x"])
def test_a_damaged_cursor_is_ignored(damaged):
    assert Cursor.of(damaged) is None
