"""Exports with arbitrary values in any place: read without an exception, into records that can be stored."""

from __future__ import annotations

import json
import random
from copy import deepcopy
from typing import Any

import pytest

from souvenir_client.errors import NotImportable
from souvenir_client.importing import BlockRecord, Conversation, Kind, MemoryRecord
from souvenir_client.importing.records import ImportedEntity, ImportedRelation
from tests.client.importing.files import (
    chatgpt_conversation,
    chatgpt_message,
    claude_conversation,
    claude_message,
    json_file,
    json_lines,
    records,
)

ROUNDS = 60
JUNK: list[Any] = [
    *(None, True, 0, -1, 1.5, float("nan"), 10**30, "", "x", "\ud800", "\0", "a/b", "..", "\n", "2024-01-01"),
    *([], {}, [[]], [None], {"a": None}, "x" * 1000, ["x", 1], {"text": "t", "type": "text"}),
]
CODE = {"content_type": "code", "text": "x"}
BLOCKS = [
    {"type": "tool_use", "name": "n", "input": {"a": 1}},
    {"type": "tool_result", "name": "n", "content": [{"type": "text", "text": "r"}]},
    {"type": "text", "text": "t"},
]
ENTITY = {"type": "entity", "name": "n", "entityType": "t", "observations": ["o", {"content": "c", "timestamp": 1}]}
RELATION = {"type": "relation", "from": "a", "to": "b", "relationType": "c"}
MEMORY = {"id": "i", "memory": "m", "metadata": {"a": [1]}, "user_id": "u", "created_at": "2024-01-01"}
MESSAGE = {"type": "message", "id": "i", "session_id": "s", "role": "user", "content": "c", "metadata": {"a": 1}}
AGENT = [
    {"type": "header", "agent_name": "a", "sessions": 1},
    {"type": "session", "session_id": "s", "user": "u", "title": "t", "metadata": {"a": 1}, "started_at": "2024-01-01"},
    {**MESSAGE, "user": "u", "name": "n", "created_at": "2024-01-01"},
    {"type": "block", "label": "l", "value": "v", "limit": 5, "description": "d", "read_only": False},
    {"type": "memory", "text": "t", "source": "s", "history": [{"before": {"source": "s"}, "after": None}], "id": 1},
]
CHATGPT = [
    chatgpt_conversation(
        [
            None,
            chatgpt_message(
                "user", "hi", {"content_type": "image_asset_pointer"}, metadata={"attachments": [{"name": "a"}]}
            ),
            chatgpt_message("assistant", content=CODE, recipient="python"),
            chatgpt_message("tool", content=CODE, tool="python"),
        ]
    )
]
CLAUDE = [
    claude_conversation(
        [
            claude_message("human", "q", "m1", parent_message_uuid="0"),
            claude_message(
                "assistant", "a", "m2", parent_message_uuid="m1", content=BLOCKS, files=[{"file_name": "f"}]
            ),
        ]
    )
]
LETTA_MESSAGES = [
    {"role": "system", "content": [{"type": "text", "text": "s"}]},
    {"role": "user", "content": [{"type": "text", "text": '{"type": "user_message", "message": "m"}'}], "name": "n"},
    {
        "role": "assistant",
        "content": [{"type": "text", "text": "t"}, {"type": "reasoning"}, {"type": "image", "source": {"url": "u"}}],
        "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": '{"message": 1}'}}],
        "created_at": "2024-01-01",
    },
    {"role": "tool", "tool_call_id": "c", "tool_returns": [{"tool_call_id": "c", "func_response": "r"}]},
    {"role": "assistant", "content": [{"type": "tool_call", "id": "d", "name": "send_message", "input": {"a": 1}}]},
]
BLOCK = {"label": "l", "value": "v", "limit": 5, "description": "d", "read_only": True}
LETTA = {
    "core_memory": [BLOCK],
    "messages": LETTA_MESSAGES,
    "name": "n",
    "passages": [{"text": "t", "tags": ["a"], "metadata": {"a": 1}, "created_at": "2024-01-01"}],
}
GRAPHITI = [
    {"uuid": "n", "name": "n", "labels": ["Entity", "l"], "summary": "s", "group_id": "g"},
    {"uuid": "m", "name": "m", "labels": [], "summary": ""},
    {
        "uuid": "e",
        "name": "r",
        "fact": "f",
        "source_node_uuid": "n",
        "target_node_uuid": "m",
        "source_node_name": "n",
        "valid_at": "2024-01-01",
        "invalid_at": None,
        "expired_at": None,
        "attributes": {"a": 1},
        "episodes": ["p"],
    },
    {"uuid": "p", "content": "a(user): c", "source": "message", "valid_at": "2024-01-01", "group_id": "g"},
    {"uuid": "q", "content": "c", "role": "tool", "role_name": "n", "thread_uuid": "t", "source_description": "d"},
    {"uuid": "r", "content": "c", "source": "text", "metadata": {"a": 1}},
]
HINDSIGHT = {
    "id": "i",
    "text": "t",
    "fact_type": "world",
    "entities": "a, b",
    "tags": ["a"],
    "metadata": {"a": 1},
    "date": "2024-01-01",
    "mentioned_at": None,
    "state": "valid",
}


@pytest.mark.parametrize(
    ("kind", "write", "content"),
    [
        (Kind.CHATGPT, json_file, CHATGPT),
        (Kind.CLAUDE, json_file, CLAUDE),
        (Kind.MEM0, json_file, {"results": [MEMORY], "relations": [{"source": "a"}]}),
        (Kind.MEM0, json_lines, [MEMORY]),
        (Kind.MCP_MEMORY, json_file, {"entities": [ENTITY], "relations": [RELATION]}),
        (Kind.MCP_MEMORY, json_lines, [ENTITY, RELATION]),
        (Kind.LETTA, json_file, LETTA),
        (Kind.LETTA, json_file, {"agents": [LETTA], "blocks": [BLOCK], "files": [{"content": "c"}]}),
        (Kind.GRAPHITI, json_lines, GRAPHITI),
        (Kind.GRAPHITI, json_file, {"nodes": GRAPHITI[:2], "edges": [GRAPHITI[2]], "episodes": GRAPHITI[3:]}),
        (Kind.HINDSIGHT, json_file, {"items": [HINDSIGHT], "total": 1}),
        (Kind.HINDSIGHT, json_lines, [HINDSIGHT, HINDSIGHT]),
        (Kind.JSONL, json_lines, AGENT),
        (
            Kind.JSONL,
            json_lines,
            [{"text": "t", "source": "s", "key": "k", "metadata": {"a": {"b": 1}}, "created_at": 1}],
        ),
    ],
)
def test_mangled_exports_give_storable_records_or_one_sentence(tmp_path, kind, write, content):
    chance = random.Random(f"{kind}{write.__name__}")
    path = tmp_path / "mangled"
    checked = 0
    for _ in range(ROUNDS):
        write(path, mangled(content, chance))
        try:
            found = records(kind, path)
        except NotImportable:
            continue
        for record in found:
            assert_storable(record)
            checked += 1
    assert checked >= ROUNDS // 4


def mangled(content: Any, chance: random.Random) -> Any:
    """A copy with other things in up to three places."""
    copy = deepcopy(content)
    for _ in range(chance.randint(1, 3)):
        holder = copy
        while True:
            name = chance.choice(list(holder) if isinstance(holder, dict) else range(len(holder)))
            below = holder[name]
            if not isinstance(below, dict | list) or not below or chance.random() < 0.1:
                break
            holder = below
        holder[name] = deepcopy(chance.choice(JUNK))
        if not isinstance(copy, dict | list) or not copy:
            break
    return copy


def assert_storable(record: object) -> None:
    match record:
        case MemoryRecord(text, source, key, _, metadata):
            assert all(len(said) in range(1, most + 1) for said, most in ((text, 50_000), (source, 500), (key, 500)))
            json.dumps([text, source, key, metadata], ensure_ascii=False, allow_nan=False).encode()
        case ImportedEntity(name, entity_type, observations):
            json.dumps([name, entity_type, list(observations)], ensure_ascii=False).encode()
        case ImportedRelation(one, other, relation):
            json.dumps([one, other, relation], ensure_ascii=False).encode()
        case BlockRecord(label, value, description):
            assert "\0" not in label + value
            json.dumps([label, value, description], ensure_ascii=False).encode()
        case Conversation(session_id, turns, title):
            assert session_id.isprintable()
            assert len(session_id) in range(1, 201)
            assert "/" not in session_id
            assert title is None or title.isprintable()
            for turn in turns:
                assert len(turn.content) in range(1, 50_001)
                assert "\0" not in turn.content
                json.dumps([turn.content, turn.metadata], ensure_ascii=False, allow_nan=False).encode()
