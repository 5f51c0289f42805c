"""Agent files of Letta in both forms, as their schemas say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from souvenir_client import Souvenir
from souvenir_client.errors import NotImportable
from souvenir_client.importing import BlockRecord, Conversation, Kind, MemoryRecord, detect, import_file, letta
from tests.client.importing.files import altered, json_file, records, skipped, usable

AT = "2025-03-01T10:00:0{}+00:00"


def block(label: str, value: str, **more: Any) -> dict[str, Any]:
    return {"label": label, "value": value, "limit": 5000, "description": "About it", "is_template": False, **more}


def call(name: str, arguments: dict[str, Any], call_id: str = "call_1") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def message(role: str, text: str | None, at: int = 0, **more: Any) -> dict[str, Any]:
    content = [] if text is None else [{"type": "text", "text": text}]
    said = {"role": role, "content": content, "name": None, "tool_calls": [], "tool_call_id": None, "tool_returns": []}
    return {**said, "created_at": AT.format(at), **more}


def wrapped(kind: str, **more: Any) -> str:
    return json.dumps({"type": kind, **more, "time": "2025-03-01 10:00:00 AM UTC+0000"})


def result(text: Any, status: str = "OK") -> str:
    return json.dumps({"status": status, "message": text, "time": "2025-03-01 10:00:00 AM UTC+0000"})


TALK = [
    message("system", "You are Letta."),
    message("user", wrapped("login", last_login="Never")),
    message("user", wrapped("user_message", message="My parrot is called Polly.", name="Ann"), 1),
    message("assistant", "I should save it.", 2, tool_calls=[call("core_memory_append", {"content": "Polly"})]),
    message("tool", result("None"), 3, name="core_memory_append", tool_call_id="call_1"),
    message("user", wrapped("heartbeat", reason="Function called"), 3),
    message("assistant", "Tell her.", 4, tool_calls=[call("send_message", {"message": "Hello Polly."}, "call_2")]),
    message("tool", result("None"), 5, name="send_message", tool_call_id="call_2"),
    message("user", wrapped("system_alert", message="Note: 3 messages are hidden."), 6),
]
OLD: dict[str, Any] = {
    "agent_type": "memgpt_agent",
    "core_memory": [block("human", "Ann"), block("persona", "I am Letta", limit=200)],
    "created_at": AT.format(0),
    "in_context_message_indices": [0, 2],
    "messages": TALK,
    "name": "letta",
    "system": "You are Letta.",
    "tools": [],
    "version": "0.8.0",
}
NEW: dict[str, Any] = {
    "agents": [
        {
            "name": "letta",
            "memory_blocks": [],
            "system": "You are Letta.",
            "agent_type": "memgpt_agent",
            "block_ids": ["block-0", "block-1"],
            "id": "agent-0",
            "in_context_message_ids": ["message-0"],
            "messages": [{**one, "id": f"message-{number}"} for number, one in enumerate(TALK)],
        }
    ],
    "groups": [],
    "blocks": [{**one, "id": f"block-{number}"} for number, one in enumerate(OLD["core_memory"])],
    "files": [],
    "sources": [],
    "tools": [],
    "mcp_servers": [],
}
SAID = [
    ("user", "My parrot is called Polly."),
    ("assistant", 'Calls core_memory_append({"content": "Polly"})'),
    ("assistant", "core_memory_append returned: None"),
    ("assistant", "Hello Polly."),
    ("system", "Note: 3 messages are hidden."),
]


def of_agent(messages: list[Any], **more: Any) -> dict[str, Any]:
    return {**OLD, "core_memory": [], "messages": messages, **more}


def turns(tmp_path: Any, messages: list[Any], **more: Any) -> list[tuple[str, str]]:
    found = usable(records(Kind.LETTA, json_file(tmp_path / "a.af", of_agent(messages, **more))))
    return [(turn.role, turn.content) for one in found if isinstance(one, Conversation) for turn in one.turns]


@pytest.mark.parametrize("content", [OLD, NEW], ids=["old", "new"])
@pytest.mark.parametrize("indent", [None, 2])
def test_both_forms_give_the_same_blocks_and_session(tmp_path, content, indent):
    path = tmp_path / "letta.af"
    path.write_text(json.dumps(content, indent=indent))
    assert detect(path) is Kind.LETTA
    found = records(Kind.LETTA, path)
    human, persona, talk = sorted(usable(found), key=lambda one: isinstance(one, Conversation))
    assert human == BlockRecord("human", "Ann", "About it", 5000, False, human.place)
    assert (persona.label, persona.limit_chars) == ("persona", 200)
    assert (talk.session_id, talk.title) == ("letta-letta", "letta")
    assert [(turn.role, turn.content) for turn in talk.turns] == SAID
    assert (talk.turns[0].name, talk.turns[0].created_at) == ("Ann", "2025-03-01T10:00:01.000000+00:00")
    assert [reason for _, reason in skipped(found)] == [
        letta.OF_SYSTEM,
        letta.EVENT,
        letta.REASONING,
        letta.EVENT,
        letta.REASONING,
        letta.SENT,
    ]


def test_a_message_keeps_its_key_when_the_ids_of_a_file_move(tmp_path):
    moved = {**NEW, "agents": [{**NEW["agents"][0], "messages": TALK[2:]}]}
    keys = []
    for content in (OLD, NEW, moved):
        [talk] = [
            one
            for one in usable(records(Kind.LETTA, json_file(tmp_path / "a.af", content)))
            if isinstance(one, Conversation)
        ]
        keys.append([turn.key for turn in talk.turns])
    assert keys[0] == keys[1] == keys[2]
    assert len(set(keys[0])) == len(SAID)


def test_equal_messages_have_different_keys(tmp_path):
    [talk] = usable(records(Kind.LETTA, json_file(tmp_path / "a.af", of_agent([message("user", "Hi")] * 3))))
    assert len({turn.key for turn in talk.turns}) == 3


def test_text_next_to_a_call_is_said_by_agents_that_speak_in_text(tmp_path):
    said = [message("assistant", "Looking.", tool_calls=[call("search", {})])]
    assert turns(tmp_path, said, agent_type="letta_v1_agent") == [
        ("assistant", "Looking."),
        ("assistant", "Calls search({})"),
    ]
    assert turns(tmp_path, [message("assistant", "Done.")]) == [("assistant", "Done.")]


def test_parts_and_results_of_the_newer_form_are_read(tmp_path):
    parts = [
        {"type": "reasoning", "reasoning": "Hm", "is_native": True},
        {"type": "text", "text": "See"},
        {"type": "tool_call", "id": "c9", "name": "look", "input": {"at": 1}},
    ]
    image = {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}}
    said = [
        message("assistant", None, content=parts),
        message("tool", None, tool_returns=[{"tool_call_id": "c9", "status": "success", "func_response": "a cat"}]),
        message("tool", result({"a": 1}, "Failed"), 1, tool_call_id="c9"),
        message("approval", None, 2, tool_calls=[call("delete", {}, "c10")]),
        message("approval", None, 3, approve=False, approvals=[]),
        message("user", None, 4, content=[{"type": "text", "text": "Look"}, image]),
        message("user", "plain", 5, content="plain"),
        message("tool", None, 6),
        message("narrator", "x", 7),
        7,
    ]
    path = json_file(tmp_path / "a.af", of_agent(said, agent_type="letta_v1_agent"))
    found = records(Kind.LETTA, path)
    [talk] = usable(found)
    assert [(turn.role, turn.content) for turn in talk.turns] == [
        ("assistant", "See"),
        ("assistant", 'Calls look({"at": 1})'),
        ("assistant", "look returned: a cat"),
        ("assistant", 'look returned: Failed: {"a": 1}'),
        ("assistant", "Calls delete({})"),
        ("user", "Look"),
        ("user", "plain"),
    ]
    assert talk.turns[5].metadata == {"attachments": ["https://x/y.png"]}
    assert [reason for _, reason in skipped(found)] == [
        letta.REASONING,
        letta.APPROVAL,
        "it has no text",
        letta.UNKNOWN_ROLE,
        letta.NO_OBJECT,
    ]


def test_passages_become_memories_and_other_items_are_counted(tmp_path):
    passage = {"text": "Ann likes tea.", "tags": ["taste"], "created_at": AT.format(1), "metadata": {"id": 1}}
    agents = [{**OLD, "core_memory": [block("a/b", "x", limit=10**6), {"label": "c"}], "passages": [passage, 7]}, 7]
    path = json_file(tmp_path / "a.af", {"agents": agents, "blocks": [3], "files": [{"content": "x"}]})
    found = records(Kind.LETTA, path)
    [memory] = [one for one in usable(found) if isinstance(one, MemoryRecord)]
    assert (memory.source, memory.text, memory.tags) == ("letta/letta", "Ann likes tea.", ["taste"])
    assert memory.metadata == {"letta_id": 1, "origin_class": "assistant"}
    [odd] = [one for one in usable(found) if isinstance(one, BlockRecord)]
    assert (odd.label, odd.limit_chars) == ("a-b", letta.MAX_LIMIT)
    assert [reason for _, reason in altered(found)[:2]] == [letta.OTHER_LABEL, letta.OTHER_LIMIT]
    assert {letta.NO_BLOCK, letta.NO_OBJECT, letta.NO_FILES} <= {reason for _, reason in skipped(found)}
    refused: list[Any] = [[], {"agents": 3}, {"a": 1}]
    for content in refused:
        with pytest.raises(NotImportable, match="no agent"):
            records(Kind.LETTA, json_file(path, content))


def test_an_agent_file_is_imported_once_into_the_agent_that_it_names(service, tmp_path):
    path = json_file(tmp_path / "letta.af", {**NEW, "agents": [{**NEW["agents"][0], "name": "of-letta"}]})
    with Souvenir(service.url) as client:
        first = import_file(client, path)
        again = import_file(client, path)
        blocks = {one.label: one.value for one in client.blocks.list("of-letta")}
        messages = client.sessions.messages("of-letta", "letta-of-letta")
    assert (first.blocks.imported, first.sessions.imported, first.messages.imported, first.skipped_count) == (
        2,
        1,
        5,
        6,
    )
    assert (again.imported, again.blocks.unchanged, again.messages.unchanged) == (0, 2, 5)
    assert blocks == {"human": "Ann", "persona": "I am Letta"}
    assert [(one.role, one.content) for one in messages] == SAID
