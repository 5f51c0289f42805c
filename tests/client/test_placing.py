"""Where context is inserted into request bodies of models, and how iterator bodies are read."""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest

from souvenir_client.interception.wires import settled
from tests.client.conversations import (
    CHAT,
    CHAT_CALL,
    CHAT_RESULT,
    MESSAGES,
    MESSAGES_CALL,
    MESSAGES_RESULT,
    QUESTION,
    RESPONSES,
    RESPONSES_CALL,
    RESPONSES_RESULT,
    wire_for,
)

STABLE, TAIL = "What is always so", "What fits the question"
MARKED = {"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}


@pytest.mark.parametrize(
    ("url", "body", "changes"),
    [
        (
            CHAT,
            {"messages": [QUESTION]},
            {
                "messages": [
                    {"role": "system", "content": STABLE},
                    {"role": "system", "content": TAIL},
                    QUESTION,
                ]
            },
        ),
        (
            CHAT,
            {
                "messages": [
                    {"role": "developer", "content": "Be kind"},
                    {"role": "user", "content": "Hi"},
                    {"role": "assistant", "content": "Hello"},
                    QUESTION,
                    CHAT_CALL,
                    CHAT_RESULT,
                ]
            },
            {
                "messages": [
                    {"role": "developer", "content": "Be kind"},
                    {"role": "developer", "content": STABLE},
                    {"role": "user", "content": "Hi"},
                    {"role": "assistant", "content": "Hello"},
                    {"role": "developer", "content": TAIL},
                    QUESTION,
                    CHAT_CALL,
                    CHAT_RESULT,
                ]
            },
        ),
        (
            CHAT,
            {"messages": [{"role": "system", "content": "Greet"}]},
            {"messages": [{"role": "system", "content": "Greet"}, {"role": "system", "content": STABLE}]},
        ),
        (
            RESPONSES,
            {"input": QUESTION["content"], "instructions": "Be kind"},
            {
                "instructions": f"Be kind\n\n{STABLE}",
                "input": [{"type": "message", "role": "system", "content": TAIL}, QUESTION],
            },
        ),
        (
            RESPONSES,
            {"input": [{"role": "developer", "content": "Be kind"}, QUESTION, RESPONSES_CALL, RESPONSES_RESULT]},
            {
                "instructions": STABLE,
                "input": [
                    {"role": "developer", "content": "Be kind"},
                    {"type": "message", "role": "developer", "content": TAIL},
                    QUESTION,
                    RESPONSES_CALL,
                    RESPONSES_RESULT,
                ],
            },
        ),
        (
            RESPONSES,
            {"input": [RESPONSES_RESULT], "previous_response_id": "resp_1", "instructions": None},
            {"instructions": STABLE},
        ),
        (
            MESSAGES,
            {"messages": [QUESTION]},
            {
                "system": [{"type": "text", "text": STABLE}],
                "messages": [
                    {
                        "role": "user",
                        "content": [{"type": "text", "text": QUESTION["content"]}, {"type": "text", "text": TAIL}],
                    }
                ],
            },
        ),
        (
            MESSAGES,
            {
                "system": "Be kind",
                "messages": [
                    {
                        "role": "user",
                        "content": [{"type": "text", "text": "Hi", "cache_control": {"type": "ephemeral"}}],
                    },
                    MESSAGES_CALL,
                    MESSAGES_RESULT,
                ],
            },
            {
                "system": [{"type": "text", "text": "Be kind"}, {"type": "text", "text": STABLE}],
                "messages": [
                    {
                        "role": "user",
                        "content": [
                            MARKED,
                            {"type": "text", "text": TAIL},
                        ],
                    },
                    MESSAGES_CALL,
                    MESSAGES_RESULT,
                ],
            },
        ),
        (
            MESSAGES,
            {
                "system": [{"type": "text", "text": "Be kind", "cache_control": {"type": "ephemeral"}}],
                "messages": [MESSAGES_RESULT],
            },
            {
                "system": [
                    {"type": "text", "text": "Be kind", "cache_control": {"type": "ephemeral"}},
                    {"type": "text", "text": STABLE},
                ]
            },
        ),
    ],
)
def test_context_keeps_the_cacheable_prefix_and_the_callers_body_unchanged(url, body, changes):
    body = {"model": "scripted-1", "tools": [{"name": "get_weather"}], "metadata": {"a": "b"}, **body}
    before = copy.deepcopy(body)
    wire = wire_for(url, body)
    assert wire.placed(body, STABLE, TAIL) == {**before, **changes}
    assert wire.placed(body, STABLE, TAIL) == wire.placed(body, STABLE, TAIL)
    assert wire.placed(body, "", "") == before
    assert body == before


def test_each_part_of_the_context_can_be_left_out():
    body = {"messages": [QUESTION]}
    chat, messages = wire_for(CHAT, body), wire_for(MESSAGES, body)
    assert chat.placed(body, STABLE, "")["messages"] == [{"role": "system", "content": STABLE}, QUESTION]
    assert chat.placed(body, "", TAIL)["messages"] == [{"role": "system", "content": TAIL}, QUESTION]
    assert messages.placed(body, STABLE, "")["messages"] == [QUESTION]
    assert "system" not in messages.placed(body, "", TAIL)


def test_iterators_are_read_once_and_sent_as_lists():
    def blocks(*texts: str) -> Iterator[dict[str, str]]:
        yield from ({"type": "text", "text": text} for text in texts)

    result = {"type": "tool_result", "tool_use_id": "call_1", "content": blocks("Sun", "ny")}
    tools = ({"name": name} for name in ("a", "b"))
    messages = iter([{"role": "user", "content": blocks("Hi", "there")}, {"role": "user", "content": [result]}])
    body = settled({"messages": messages, "system": blocks("Be kind"), "tools": tools})
    assert body["tools"] is tools
    assert [turn.content for turn in wire_for(MESSAGES, body).turns(body)] == ["Hi\nthere", "Sun\nny"]
    assert body["system"] == [{"type": "text", "text": "Be kind"}]
    assert settled(body) == body


def test_an_undecided_iterator_is_left_to_the_sdk():
    messages = iter([QUESTION])
    wire = wire_for(MESSAGES, {"messages": messages})
    assert wire.turns({"messages": messages}) == []
    assert list(messages) == [QUESTION]
