"""Exports of Claude: content blocks are preferred to the plain text, and one branch is imported."""

from __future__ import annotations

import pytest

from souvenir_client.importing import Kind, claude, conversations
from tests.client.importing.files import (
    altered,
    claude_conversation,
    claude_message,
    json_file,
    records,
    skipped,
    usable,
)


@pytest.fixture
def found_in(tmp_path):
    def read(*messages, **more):
        return records(Kind.CLAUDE, json_file(tmp_path / "conversations.json", [claude_conversation(messages, **more)]))

    return read


def test_a_conversation_becomes_a_session_with_its_name_and_times(found_in):
    found = found_in(claude_message("human", "I like tea.", "m1"), claude_message("assistant", "Noted.", "m2"))
    [conversation] = usable(found)
    assert (conversation.session_id, conversation.title) == ("claude-b7d3", "Tea")
    assert [(turn.role, turn.content, turn.key) for turn in conversation.turns] == [
        ("user", "I like tea.", "m1"),
        ("assistant", "Noted.", "m2"),
    ]
    assert conversation.turns[0].created_at == "2024-11-30T14:49:36.123456+00:00"
    assert found == [conversation]


def test_reasoning_is_skipped_and_tool_calls_become_separate_turns(found_in):
    blocks = [
        {"type": "thinking", "thinking": "SECRET THOUGHT"},
        {"type": "text", "text": "Let me look."},
        {"type": "tool_use", "name": "lookup", "input": {"city": "Lisbon"}},
        {"type": "tool_result", "name": "lookup", "content": [{"type": "text", "text": "sunny"}]},
        {"type": "text", "text": "It is sunny."},
        {"type": "text", "text": "Take a hat."},
    ]
    flat = f"SECRET THOUGHT\nLet me look.\n{claude.NOT_SHOWN}\nIt is sunny."
    [conversation] = usable(found_in(claude_message("assistant", flat, "m1", content=blocks)))
    assert [(turn.key, turn.content) for turn in conversation.turns] == [
        ("m1", "Let me look."),
        ("m1/2", 'Calls lookup({"city": "Lisbon"})'),
        ("m1/3", "lookup returned: sunny"),
        ("m1/4", "It is sunny.\n\nTake a hat."),
    ]
    assert {turn.role for turn in conversation.turns} == {"assistant"}


@pytest.mark.parametrize("content", [None, [], [{"type": "thinking", "thinking": "hm"}], "no list"])
def test_a_message_without_text_blocks_uses_its_plain_text(found_in, content):
    flat = f"Old export.\n{claude.NOT_SHOWN}\n"
    [conversation] = usable(found_in(claude_message("human", flat, "m1", content=content)))
    assert [turn.content for turn in conversation.turns] == ["Old export."]


def test_attachments_are_named_without_their_text(found_in):
    attached = [{"file_name": "plan.pdf", "file_size": 9, "extracted_content": "EXTRACTED"}]
    found = found_in(claude_message("human", "Read this", "m1", attachments=attached, files=[{"file_name": "a.png"}]))
    [conversation] = usable(found)
    assert conversation.turns[0].metadata == {"attachments": ["plan.pdf", "a.png"]}
    assert "EXTRACTED" not in str(found)
    assert altered(found) == [("conversation b7d3, message m1", conversations.LEFT_OUT_ATTACHMENTS)]


def test_the_newest_branch_of_messages_with_parents_is_imported(found_in):
    messages = [
        claude_message("human", "Question", "m1", parent_message_uuid="00000000-0000-4000-8000-000000000000"),
        claude_message("assistant", "Old answer", "m2", parent_message_uuid="m1"),
        claude_message(
            "assistant", "New answer", "m3", parent_message_uuid="m1", created_at="2024-12-01T00:00:00.000000Z"
        ),
    ]
    found = found_in(*messages)
    [newest] = usable(found)
    assert [turn.content for turn in newest.turns] == ["Question", "New answer"]
    assert skipped(found) == [("conversation b7d3, message m2", conversations.OTHER_BRANCH)]
    [named] = usable(found_in(*messages, current_leaf_message_uuid="m2"))
    assert [turn.content for turn in named.turns] == ["Question", "Old answer"]


def test_messages_with_missing_parents_are_imported_in_order(found_in):
    [conversation] = usable(
        found_in(
            claude_message("human", "One", "m1", parent_message_uuid=claude.ROOT),
            claude_message("assistant", "Two", "m2", parent_message_uuid="m1"),
            claude_message("human", "Three", "m3", parent_message_uuid="deleted"),
            claude_message("assistant", "Four", "m4", parent_message_uuid="m3", created_at="2025-01-01T00:00:00Z"),
        )
    )
    assert [turn.content for turn in conversation.turns] == ["One", "Two", "Three", "Four"]


def test_empty_messages_unknown_senders_and_unreadable_times_do_not_stop_the_rest(found_in):
    found = found_in(
        claude_message("human", "", "m1"),
        claude_message("narrator", "Meanwhile", "m2"),
        claude_message("human", "Hello", "m3", created_at="yesterday", attachments=None, files="none"),
    )
    [conversation] = usable(found)
    assert [(turn.key, turn.created_at) for turn in conversation.turns] == [("m3", "2024-11-30T14:49:36.123456+00:00")]
    assert skipped(found) == [
        ("conversation b7d3, message m1", "it has no text"),
        ("conversation b7d3, message m2", claude.UNKNOWN_ROLE),
    ]
    assert altered(found) == [("conversation b7d3, message m3", conversations.UNREADABLE_TIME)]
