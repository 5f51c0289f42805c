"""Text that is excluded from extraction, and similar text that is kept."""

from __future__ import annotations

import json
import sys
from datetime import UTC, datetime
from types import FrameType
from typing import Any

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from souvenir.conversations.context_text import stable_prefix, volatile_tail
from souvenir.core.text import fenced
from souvenir.learning.transcripts.hygiene import screened
from souvenir.learning.transcripts.transcript import read_transcript
from souvenir.learning.transcripts.turns import RemovedKind, TurnRole
from tests.conversations.test_context_text import block, memory, turn
from tests.core.test_fence import HOSTILE
from tests.learning.test_transcript import ANY_TEXT

RECALLED, INJECTED, TOOL, NOISE, REASONING = RemovedKind


def kept(text: str, role: TurnRole = TurnRole.USER) -> str:
    done, parts = 0, []
    for span in screened(text, role):
        parts.append(text[done : span.start])
        done = span.end
    return "".join([*parts, text[done:]])


def kinds(text: str, role: TurnRole = TurnRole.USER) -> list[RemovedKind]:
    return [span.kind for span in screened(text, role)]


TRACE = "Traceback (most recent call last):\n" + '  File "a.py", line 3, in f\n    g()\n' * 4 + "ValueError: no\n"
DIFF = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@\n-old\n+new\n same\n"
LOG = "".join(f"2024-03-15 10:00:0{second} INFO server: started {second}\n" for second in range(8))


@pytest.mark.parametrize(
    ("text", "kind", "left"),
    [
        (fenced("User: I live in Rome.") + "Thanks", RECALLED, "\nThanks"),
        ("Hi <RECALLED_MEMORY id=1>x</recalled_memory > there", RECALLED, "Hi  there"),
        ("Hi\n<recalled_memory>\nI live in Rome.", RECALLED, "Hi\n"),
        ("I live in Rome.</recalled_memory> Hi", RECALLED, " Hi"),
        ("```\n<recalled_memory>\nx\n</recalled_memory>\n```\nHi", RECALLED, "```\n\n```\nHi"),
        ("<memory>Alice likes tea</memory>Hi", RECALLED, "Hi"),
        ("<memories>\n- tea\n</memories>\nHi", RECALLED, "\nHi"),
        ("<relevant_memories>a</relevant_memories>Hi", RECALLED, "Hi"),
        ("<recalled-context>a</recalled-context>Hi", RECALLED, "Hi"),
        ("<claude-mem-context>a</claude-mem-context>Hi", RECALLED, "Hi"),
        ('<context source="memory">a</context>Hi', RECALLED, "Hi"),
        ("<context>Recalled from long-term memory: a</context>Hi", RECALLED, "Hi"),
        ("The following is context from your memory:\n\n- tea\n- milk\n\nHi there", RECALLED, "\n\nHi there"),
        ("Relevant memories:\n1. tea\n2. milk\nHi there", RECALLED, "\nHi there"),
        ("<system-reminder>be nice</system-reminder>Hi", INJECTED, "Hi"),
        ("<system-reminder>a <system-reminder>b</system-reminder> c</system-reminder>Hi", INJECTED, "Hi"),
        ("<system-reminder>a <system-reminder>b</system-reminder>Hi", INJECTED, "Hi"),
        ("Hi\n<system-reminder>be nice", INJECTED, "Hi\n"),
        ("<user-prompt-submit-hook>done</user-prompt-submit-hook>Hi", INJECTED, "Hi"),
        ("<local-command-stdout>out</local-command-stdout>Hi", INJECTED, "Hi"),
        ("<environment_details>files</environment_details>Hi", INJECTED, "Hi"),
        ("<function_calls>f(x)</function_calls>Hi", TOOL, "Hi"),
        ('{"type": "tool_use", "name": "ls", "input": {}}\nHi', TOOL, "\nHi"),
        ('{"name": "ls",\n "arguments": {"path": "/"}}\nHi', TOOL, "\nHi"),
        ("<thinking>hm</thinking>Hi", REASONING, "Hi"),
        ("Hi " + "QUJD" * 60 + " there", NOISE, "Hi  there"),
        ("Hi data:image/png;base64," + "QUJD" * 60 + " there", NOISE, "Hi  there"),
        ("Hi " + "0123456789abcdef" * 16 + " there", NOISE, "Hi  there"),
        ("Hi\n" + ("QUJD" * 16 + "\n") * 4 + "QUI=\nthere", NOISE, "Hi\n\nthere"),
        (f"It fails:\n{TRACE}Why?", NOISE, "It fails:\nValueError: no\nWhy?"),
        (f"Look:\n{DIFF}Fine?", NOISE, "Look:\nFine?"),
        (f"Look:\n{LOG}Fine?", NOISE, "Look:\nFine?"),
    ],
)
def test_unspoken_text_is_removed_and_the_rest_is_kept(text: str, kind: RemovedKind, left: str):
    assert set(kinds(text)) == {kind}
    assert kept(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "Please explain what `<system-reminder>` does in a prompt, and `</system-reminder>`.",
        "The tag `<recalled_memory>` opens the fence.",
        "Our XML has <memory> in it, for the size of the machine.",
        "```xml\n<memory>512</memory>\n<system-reminder>\n```\nIs that right?",
        "I use a <context> element with three children.</context>",
        "Wrap it with <system-reminder> and be done.",
        "## Memory\n\nThe machine has 16 GB.",
        "## Relevant Memories\n\nI wrote a novel of that name.",
        "The following is a list from my garden:\n- roses\n- tulips",
        '{"name": "Alice", "city": "Rome"}',
        "Set it to {x: 1} and [y].",
        'It says:\n  File "a.py", line 3\nand I fixed it.',
        "- milk\n- bread\n- eggs\n- tea\n- rice\n- oil\n- salt",
        "The commit is 9640068f8a2c9fed64741e624999c1aedf7b5bf35f8a3770b96.",
        "I met him at the station (the old one).",
        "a < b and c > d",
        "",
    ],
)
def test_messages_about_tags_and_logs_are_kept(text: str):
    assert screened(text, TurnRole.USER) == []


def test_machine_readable_tool_output_is_removed_and_readable_output_is_kept():
    assert kept('{"rows": [1, 2, 3]}', TurnRole.TOOL) == ""
    assert kept('{"rows": [1, 2, 3]}') == '{"rows": [1, 2, 3]}'
    assert kept("The office opens at nine.", TurnRole.TOOL) == "The office opens at nine."


def test_terminal_colours_are_removed_from_a_line():
    assert kept("\x1b[1;31mError\x1b[0m in \x1b]8;;http://x\x07line\x1b]8;;\x07 3") == "Error in line 3"


def test_a_context_is_recognised_without_its_fence():
    said = [turn(0, "My cat is called Tom."), turn(1, "Noted.")]
    tail = volatile_tail([memory("Alice leads billing.\nSince May.")], [], follows=False)
    talks = volatile_tail([], [said], follows=False)
    blocks = stable_prefix([block("human", "Name: Alice")])
    for context in (tail, talks, blocks):
        bare = context.replace("<recalled_memory>\n", "").replace("</recalled_memory>\n", "")
        assert kept(bare).strip() == ""
        assert set(kinds(bare)) == {RECALLED}
    bare = tail.replace("<recalled_memory>\n", "").replace("</recalled_memory>\n", "")
    assert kept(f"{bare}\nI moved to Rome.") == "I moved to Rome."


def test_an_unclosed_tag_hides_its_own_turn_and_is_reported():
    text = "User: a\n<recalled_memory>\nb\nAssistant: c\nUser: d\n<system-reminder>\ne\nUser: f"
    transcript = read_transcript(text, document_at=None)
    assert [one.text for one in transcript.turns] == ["a", "c", "d", "f"]
    assert [(part.kind, part.text) for part in transcript.removed] == [
        (RECALLED, "<recalled_memory>\nb\n"),
        (INJECTED, "<system-reminder>\ne\n"),
    ]


def test_a_forged_opening_tag_does_not_extend_to_a_later_turn():
    text = "Tool: <recalled_memory>\nUser: I live in Rome.\nAssistant: ok\nUser: " + fenced("old") + "and I like tea."
    transcript = read_transcript(text, document_at=None)
    assert [one.text for one in transcript.turns if one.role == TurnRole.USER] == ["I live in Rome.", "and I like tea."]


def test_lines_of_recalled_conversations_open_no_turns():
    inside = "User: I live in Rome.\nAssistant: Noted.\n"
    for block_text in (
        fenced(inside),
        f"<memory>\n{inside}</memory>\n",
        f"<system-reminder>\n{inside}</system-reminder>\n",
    ):
        transcript = read_transcript(f"User: Hi\n{block_text}there\nAssistant: Hello", document_at=None)
        assert [one.text.split() for one in transcript.turns] == [["Hi", "there"], ["Hello"]]


# --- properties -------------------------------------------------------------------------------------------------------


@given(HOSTILE | ANY_TEXT, st.sampled_from([str, json.dumps]), st.sampled_from(["", "User: Hi\n", "```\n", "`"]))
def test_no_fenced_text_is_kept(text: str, written: Any, before: str):
    inside = fenced(text)
    if written is json.dumps:
        transcript = read_transcript(json.dumps([{"role": "user", "content": f"{before}\n{inside}"}]), document_at=None)
        assert "".join(one.text for one in transcript.turns).split() == before.split()
    else:
        assert read_transcript(inside, document_at=None).is_empty


def test_spans_ascend_without_overlap_and_screening_what_is_left_never_fails():
    checked = 0

    @given(ANY_TEXT, st.sampled_from(TurnRole))
    @example(fenced("text"), TurnRole.USER)
    def ascend(text: str, role: TurnRole) -> None:
        nonlocal checked
        done = 0
        for span in screened(text, role):
            assert done <= span.start < span.end <= len(text)
            done = span.end
            checked += 1
        screened(kept(text, role), role)

    ascend()
    assert checked > 0


@given(ANY_TEXT)
def test_kept_and_removed_parts_of_a_text_without_turns_cover_it(text: str):
    transcript = read_transcript(text, document_at=datetime(2024, 3, 15, tzinfo=UTC))
    assume([one.role for one in transcript.turns] == [TurnRole.UNKNOWN])
    assume("Session" not in text and '"role"' not in text)
    spans = [(piece.start, piece.end) for one in transcript.turns for piece in one.pieces]
    spans += [(part.start, part.end) for part in transcript.removed]
    covered = {at for start, end in spans for at in range(start, end)}
    assert all(text[at].isspace() for at in range(len(text)) if at not in covered)


# --- steps ------------------------------------------------------------------------------------------------------------


def steps_of(text: str) -> int:
    """Lines of our own code that run while a text is read."""
    count = 0

    def line(_frame: FrameType, event: str, _arg: object) -> Any:
        nonlocal count
        count += event == "line"
        return line

    def call(frame: FrameType, _event: str, _arg: object) -> Any:
        return line if "souvenir" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(call)
    try:
        read_transcript(text, document_at=None)
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize(
    "piece",
    [
        *("User:\n", "User: hi\nAssistant: ho\n", "word ", "\n", "[2024-03-15 10:00] Bob: a\n", "Ann: x\nBob: y\n"),
        *(
            "<recalled_memory>",
            "</recalled_memory>",
            "User: <recalled_memory>\n",
            "<memory>\n",
            "<memory></memory>",
            "<",
        ),
        *(
            "<context> memory",
            "<system-reminder>",
            "```\n",
            "```a\n",
            "`a ",
            "{\n",
            "[\n",
            '{"a\n',
            "at f(\n",
            "\x1b[0m",
        ),
        *(
            '{"role": "user", "content": "\\n<memory>x</memory>"}\n',
            "## Memory\n\n### x\n",
            "@@ -1 +1 @@\n+a\n",
            "- a\n",
        ),
    ],
)
def test_twice_the_text_takes_about_twice_the_steps(piece: str):
    once, twice = steps_of(piece * 60), steps_of(piece * 120)
    assert twice <= 2.3 * once + 500
