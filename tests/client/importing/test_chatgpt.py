"""Exports of ChatGPT: the last viewed branch of each conversation tree."""

from __future__ import annotations

import json

import pytest

from souvenir_client.errors import NotImportable
from souvenir_client.importing import Conversation, Kind, chatgpt, conversations, detect
from tests.client.importing.files import (
    altered,
    chatgpt_conversation,
    chatgpt_message,
    json_file,
    records,
    skipped,
    usable,
    zipped,
)


@pytest.fixture
def found_in(tmp_path):
    def read(*conversations):
        return records(Kind.CHATGPT, json_file(tmp_path / "conversations.json", list(conversations)))

    return read


def test_a_conversation_becomes_a_session_with_its_title_times_and_model(found_in):
    [conversation] = usable(
        found_in(
            chatgpt_conversation(
                [
                    None,
                    chatgpt_message("user", "Where shall I move?", at=1_700_000_001.5),
                    chatgpt_message("assistant", "To Lisbon.", at=1_700_000_002, metadata={"model_slug": "gpt-4o"}),
                ]
            )
        )
    )
    assert isinstance(conversation, Conversation)
    assert (conversation.session_id, conversation.title) == ("chatgpt-6a1f", "Moving house")
    assert [(turn.role, turn.content, turn.key, turn.created_at, turn.metadata) for turn in conversation.turns] == [
        ("user", "Where shall I move?", "n1", "2023-11-14T22:13:21.500000+00:00", {}),
        ("assistant", "To Lisbon.", "n2", "2023-11-14T22:13:22.000000+00:00", {"model": "gpt-4o"}),
    ]


def test_only_the_last_viewed_branch_is_imported(found_in):
    said = chatgpt_conversation([None, chatgpt_message("user", "Hello"), chatgpt_message("assistant", "First try")])
    second = {**said["mapping"]["n2"], "id": "again", "message": chatgpt_message("assistant", "Second try")}
    said["mapping"]["again"] = second
    said["mapping"]["n1"]["children"].append("again")
    said["current_node"] = "again"
    found = found_in(said)
    [conversation] = usable(found)
    assert [turn.content for turn in conversation.turns] == ["Hello", "Second try"]
    assert skipped(found) == [("conversation 6a1f, message n2", conversations.OTHER_BRANCH)]


@pytest.mark.parametrize("current", [None, "not-in-the-tree", 7])
def test_a_conversation_without_a_current_node_is_read_from_its_newest_leaf(found_in, current):
    said = chatgpt_conversation(
        [None, chatgpt_message("user", "Hello", at=1.0), chatgpt_message("assistant", "Old", at=2.0)],
        current_node=current,
    )
    said["mapping"]["new"] = {
        "id": "new",
        "parent": "n1",
        "children": [],
        "message": chatgpt_message("user", "New", at=3),
    }
    [conversation] = usable(found_in(said))
    assert [turn.content for turn in conversation.turns] == ["Hello", "New"]


def test_a_cycle_in_the_tree_ends_the_branch(found_in):
    said = chatgpt_conversation([chatgpt_message("user", "One"), chatgpt_message("assistant", "Two")])
    said["mapping"]["n0"]["parent"] = "n1"
    [conversation] = usable(found_in(said))
    assert [turn.content for turn in conversation.turns] == ["One", "Two"]


def test_a_turn_without_a_time_inherits_it(found_in):
    [conversation] = usable(
        found_in(
            chatgpt_conversation(
                [
                    chatgpt_message("user", "One"),
                    chatgpt_message("assistant", "Two", at=1_700_000_050),
                    chatgpt_message("user", "Three"),
                ]
            )
        )
    )
    assert [turn.created_at for turn in conversation.turns] == [
        "2023-11-14T22:13:20.250000+00:00",
        "2023-11-14T22:14:10.000000+00:00",
        "2023-11-14T22:14:10.000000+00:00",
    ]


def test_hidden_messages_are_skipped_and_counted(found_in):
    found = found_in(
        chatgpt_conversation(
            [
                None,
                chatgpt_message("system", "You are helpful"),
                chatgpt_message("user", "About me", metadata={"is_visually_hidden_from_conversation": True}),
                chatgpt_message("user", "", content={"content_type": "user_editable_context", "user_profile": "x"}),
                chatgpt_message("user", "Hello"),
                chatgpt_message("assistant", content={"content_type": "thoughts", "thoughts": [{"content": "hm"}]}),
                chatgpt_message("tool", content={"content_type": "tether_quote", "text": "a page"}, tool="browser"),
                chatgpt_message("assistant", ""),
                chatgpt_message("assistant", "Hi"),
                {"author": {"role": "narrator"}, "content": {"content_type": "text", "parts": ["Meanwhile"]}},
            ]
        )
    )
    [conversation] = usable(found)
    assert [turn.content for turn in conversation.turns] == ["Hello", "Hi"]
    where = "conversation 6a1f, message"
    assert skipped(found) == [
        (f"{where} n1", chatgpt.SYSTEM),
        (f"{where} n2", chatgpt.HIDDEN),
        (f"{where} n3", chatgpt.INSTRUCTIONS),
        (f"{where} n5", chatgpt.REASONING),
        (f"{where} n6", chatgpt.READ_PAGE),
        (f"{where} n7", "it has no text"),
        (f"{where} n9", chatgpt.UNKNOWN_ROLE),
    ]


def test_tool_calls_and_results_are_turns_of_the_assistant(found_in):
    [conversation] = usable(
        found_in(
            chatgpt_conversation(
                [
                    chatgpt_message("user", "What is 6 times 7?"),
                    chatgpt_message(
                        "assistant",
                        content={"content_type": "code", "language": "python", "text": "6 * 7"},
                        recipient="python",
                    ),
                    chatgpt_message("tool", content={"content_type": "execution_output", "text": "42"}, tool="python"),
                    chatgpt_message("assistant", "It is 42."),
                ]
            )
        )
    )
    _, call, result, _ = conversation.turns
    assert (call.role, call.content) == ("assistant", "Calls python(6 * 7)")
    assert call.metadata == {"tool_calls": [{"name": "python", "arguments": "6 * 7"}]}
    assert (result.role, result.content) == ("assistant", "python returned: 42")
    assert result.metadata == {"tool_result": {"name": "python"}}


def test_a_multimodal_message_keeps_its_text(found_in):
    picture = {"content_type": "image_asset_pointer", "asset_pointer": "sediment://file_1", "width": 1}
    speech = {"content_type": "audio_transcription", "text": "Can you hear me?", "direction": "in"}
    content = {"content_type": "multimodal_text", "parts": [picture, "What is this?", speech, None]}
    attachments = {"attachments": [{"id": "f", "name": "cat.png", "mimeType": "image/png"}]}
    found = found_in(chatgpt_conversation([chatgpt_message("user", content=content, metadata=attachments)]))
    [conversation] = usable(found)
    assert conversation.turns[0].content == "What is this?\nCan you hear me?"
    assert conversation.turns[0].metadata == {"attachments": ["image", "cat.png"]}
    assert altered(found) == [("conversation 6a1f, message n0", conversations.LEFT_OUT_ATTACHMENTS)]


def test_an_oversized_message_is_split_without_loss(found_in):
    words = " ".join(f"word{number}" for number in range(15_000))
    found = found_in(chatgpt_conversation([chatgpt_message("user", words)]))
    [conversation] = usable(found)
    assert [turn.key for turn in conversation.turns] == ["n0", "n0#2", "n0#3"]
    assert all(len(turn.content) <= 50_000 for turn in conversation.turns)
    assert "".join(turn.content for turn in conversation.turns).split() == words.split()
    assert altered(found) == [("conversation 6a1f, message n0", conversations.SPLIT)]


def test_lone_surrogates_and_nul_are_replaced(tmp_path):
    said = json.dumps([chatgpt_conversation([chatgpt_message("user", "MARK")])])
    path = tmp_path / "conversations.json"
    path.write_text(said.replace("MARK", "a\\ud83db\\u0000c 日本"), encoding="utf-8")
    [conversation] = usable(records(Kind.CHATGPT, path))
    assert conversation.turns[0].content == "a\ufffdbc 日本"


def test_empty_or_invalid_conversations_are_counted_and_the_others_imported(found_in):
    found = found_in(
        None,
        {"title": "no tree"},
        chatgpt_conversation([None], conversation_id="empty"),
        chatgpt_conversation([{"author": None, "content": None, "metadata": None}], conversation_id="broken"),
        {"mapping": {"a": "no node", "b": {"message": "none"}}, "id": "odd"},
        chatgpt_conversation([chatgpt_message("user", "Fine")], conversation_id="ok", title=None),
    )
    [conversation] = usable(found)
    assert (conversation.session_id, conversation.title) == ("chatgpt-ok", None)
    reasons = dict(skipped(found))
    assert reasons["conversation empty"] == conversations.NO_MESSAGES
    assert reasons["conversations.json, conversation 1"].startswith("it is not a conversation")
    assert {"conversation broken", "conversation odd"} <= reasons.keys()


def test_a_zip_with_numbered_parts_is_read_in_order_without_other_files(tmp_path):
    parts = {
        f"conversations-00{number}.json": [
            chatgpt_conversation([chatgpt_message("user", "Hi")], conversation_id=f"c{number}")
        ]
        for number in (1, 0)
    }
    path = zipped(tmp_path / "export.zip", {"user.json": {"email": "x"}, "chat.html": b"<html>", **parts})
    assert detect(path) is Kind.CHATGPT
    assert [one.session_id for one in usable(records(Kind.CHATGPT, path))] == ["chatgpt-c0", "chatgpt-c1"]


def test_a_folder_with_an_unpacked_export_is_read(tmp_path):
    json_file(tmp_path / "conversations.json", [chatgpt_conversation([chatgpt_message("user", "Hi")])])
    (tmp_path / "README.md").write_text("not part of it", encoding="utf-8")
    assert detect(tmp_path) is Kind.CHATGPT
    assert [one.session_id for one in usable(records(Kind.CHATGPT, tmp_path))] == ["chatgpt-6a1f"]


def test_a_document_other_than_a_list_of_conversations_is_refused(tmp_path):
    with pytest.raises(NotImportable, match="no list of conversations"):
        records(Kind.CHATGPT, json_file(tmp_path / "x.json", 7))
