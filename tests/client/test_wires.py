"""Reading turns from request and response bodies of model calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from souvenir_client.interception.wires import Turn, settled, wire_of
from tests.cases import for_all
from tests.client.conversations import (
    ASKED,
    CALLED,
    CALLS,
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
    RESULT,
    wire_for,
)
from tests.client.recording import anthropic_client, openai_client
from tests.vendors.llm import LLMVendor, call, says


def turns_of(url: str, items: Any) -> list[Turn]:
    body = {"model": "scripted-1", "input" if url == RESPONSES else "messages": items}
    return wire_for(url, body).turns(settled(body))


def test_turns_exclude_system_messages():
    for role in ("system", "developer"):
        assert turns_of(CHAT, [{"role": role, "content": "Be kind"}, QUESTION]) == [ASKED]
        assert turns_of(RESPONSES, [{"role": role, "content": "Be kind"}, QUESTION]) == [ASKED]
    assert turns_of(MESSAGES, [QUESTION, {"role": "system", "content": "Be kind"}]) == [ASKED]


@pytest.mark.parametrize(
    ("url", "items"),
    [
        (CHAT, [QUESTION, CHAT_CALL, CHAT_RESULT]),
        (RESPONSES, [QUESTION, {"type": "reasoning", "summary": []}, RESPONSES_CALL, RESPONSES_RESULT]),
        (MESSAGES, [QUESTION, MESSAGES_CALL, MESSAGES_RESULT]),
    ],
)
def test_a_tool_loop_reads_the_same_on_every_wire(url, items):
    assert turns_of(url, items) == [ASKED, CALLED, RESULT]


@pytest.mark.parametrize(
    ("url", "item", "expected"),
    [
        (CHAT, {"role": "user", "content": "Hi"}, Turn("user", "Hi")),
        (
            CHAT,
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
                    {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}},
                    {"type": "file", "file": {"file_id": "file_1"}},
                    {"type": "text", "text": "Be brief"},
                ],
            },
            Turn("user", "What is this?\nBe brief", {"attachments": ["image", "audio", "file"]}),
        ),
        (
            CHAT,
            {"role": "assistant", "content": [{"type": "text", "text": "So "}, {"type": "text", "text": "be it"}]},
            Turn("assistant", "So be it"),
        ),
        (
            CHAT,
            {"role": "assistant", "content": None, "refusal": "I cannot help with that"},
            Turn("assistant", "I cannot help with that"),
        ),
        (
            CHAT,
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "No"}]},
            Turn("assistant", "No"),
        ),
        (
            CHAT,
            {"role": "assistant", "function_call": {"name": "get_time", "arguments": "{}"}},
            Turn("assistant", "", {"tool_calls": [{"id": "", "name": "get_time", "arguments": "{}"}]}),
        ),
        (
            CHAT,
            {"role": "function", "name": "get_time", "content": "Noon"},
            Turn("tool", "Noon", {"tool_result": {"tool_call_id": "", "name": "get_time"}}),
        ),
        (
            CHAT,
            {
                "role": "assistant",
                "content": "Let me run it",
                "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "python", "input": "1 + 1"}}],
            },
            Turn("assistant", "Let me run it", {"tool_calls": [{"id": "c", "name": "python", "arguments": "1 + 1"}]}),
        ),
        (
            RESPONSES,
            {
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "What is this?"},
                    {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
                ],
            },
            Turn("user", "What is this?", {"attachments": ["image"]}),
        ),
        (
            RESPONSES,
            {
                "type": "message",
                "role": "assistant",
                "content": [{"type": "output_text", "text": "So "}, {"type": "output_text", "text": "be it"}],
            },
            Turn("assistant", "So be it"),
        ),
        (
            RESPONSES,
            {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No"}]},
            Turn("assistant", "No"),
        ),
        (
            RESPONSES,
            {"type": "custom_tool_call", "call_id": "c", "name": "python", "input": "1 + 1"},
            Turn("assistant", "", {"tool_calls": [{"id": "c", "name": "python", "arguments": "1 + 1"}]}),
        ),
        (
            RESPONSES,
            {"type": "web_search_call", "id": "ws_1", "action": {"type": "search", "query": "Lisbon"}},
            Turn(
                "assistant",
                "",
                {
                    "tool_calls": [
                        {"id": "ws_1", "name": "web_search", "arguments": '{"type": "search", "query": "Lisbon"}'}
                    ]
                },
            ),
        ),
        (
            RESPONSES,
            {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "Sunny"}]},
            Turn("tool", "Sunny", {"tool_result": {"tool_call_id": "c", "name": ""}}),
        ),
        (
            RESPONSES,
            {
                "type": "shell_call_output",
                "call_id": "c",
                "output": [{"stdout": "one", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}],
            },
            Turn("tool", "one", {"tool_result": {"tool_call_id": "c", "name": ""}}),
        ),
        (
            RESPONSES,
            {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot", "file_id": "f"}},
            Turn(
                "tool",
                "",
                {"tool_result": {"tool_call_id": "c", "name": ""}, "attachments": ["computer_screenshot"]},
            ),
        ),
        (
            MESSAGES,
            {
                "role": "user",
                "content": [
                    {"type": "document", "source": {"type": "file", "file_id": "f"}},
                    {"type": "text", "text": "Sum it up", "cache_control": {"type": "ephemeral"}},
                ],
            },
            Turn("user", "Sum it up", {"attachments": ["document"]}),
        ),
        (
            MESSAGES,
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "The user wants a secret plan", "signature": "s"},
                    {"type": "redacted_thinking", "data": "AAAA"},
                    {"type": "text", "text": "I look it up."},
                    {"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {"query": "Lisbon"}},
                    {"type": "web_search_tool_result", "tool_use_id": "srv", "content": []},
                    {"type": "text", "text": "It is "},
                    {"type": "text", "text": "sunny."},
                ],
            },
            Turn(
                "assistant",
                "I look it up.\n\nIt is sunny.",
                {"tool_calls": [{"id": "srv", "name": "web_search", "arguments": '{"query": "Lisbon"}'}]},
            ),
        ),
        (
            MESSAGES,
            {
                "role": "user",
                "content": [
                    {
                        "type": "tool_result",
                        "tool_use_id": "c",
                        "content": [
                            {"type": "text", "text": "Sunny"},
                            {"type": "image", "source": {"type": "url", "url": "http://localhost/a.png"}},
                        ],
                    }
                ],
            },
            Turn("tool", "Sunny", {"tool_result": {"tool_call_id": "c", "name": ""}, "attachments": ["image"]}),
        ),
    ],
)
def test_a_message_of_any_shape_is_one_turn(url, item, expected):
    assert turns_of(url, [item]) == [expected]


def test_a_message_may_hold_text_and_tool_results():
    mixed = {"role": "user", "content": [*MESSAGES_RESULT["content"], {"type": "text", "text": "And in Porto?"}]}
    assert turns_of(MESSAGES, [MESSAGES_CALL, mixed]) == [CALLED, RESULT, Turn("user", "And in Porto?")]


def test_a_string_is_an_input_of_the_user():
    assert turns_of(RESPONSES, QUESTION["content"]) == [ASKED]


def test_a_request_may_continue_an_earlier_response():
    body = {"model": "scripted-1", "previous_response_id": "resp_1", "input": [RESPONSES_RESULT]}
    nameless = {"tool_result": {"tool_call_id": "call_1", "name": ""}}
    assert wire_for(RESPONSES, body).turns(body) == [Turn("tool", "Sunny", nameless)]
    assert wire_for(RESPONSES, {"prompt": {"id": "p"}}).turns({"prompt": {"id": "p"}}) == []


STRANGE = [
    None,
    7,
    "text",
    [],
    {},
    {"role": "user"},
    {"role": "user", "content": 7},
    {"role": "user", "content": [None, 7, "x", [], {"type": 3}, {"type": "text"}, {"type": "text", "text": 7}]},
    {"role": "assistant", "content": {"type": "text"}, "tool_calls": 3, "function_call": 5, "audio": "x"},
    {"role": "assistant", "tool_calls": [None, {}, {"function": None}, {"id": 3, "function": 4}]},
    {"role": "assistant", "content": [{"type": "tool_use"}, {"type": "thinking"}, object()]},
    {"role": "tool"},
    {"role": ["user"], "content": "x"},
    {"type": "function_call"},
    {"type": "function_call_output", "output": 3},
    {"type": "item_reference", "id": "x"},
    {"type": "nobody_knows_this", "content": "x"},
    {"type": 5, "role": "user", "content": object()},
    object(),
]


@for_all("url", [CHAT, RESPONSES, MESSAGES])
@for_all("strange", STRANGE)
def test_unreadable_values_are_skipped(url, strange):
    body = {
        "input" if url == RESPONSES else "messages": [strange, QUESTION],
        "system": strange,
        "instructions": strange,
    }
    wire = wire_for(url, body)
    assert wire.turns(settled(body))[-1] == ASKED
    placed = wire.placed(settled(body), "stable", "tail")
    assert wire.turns(placed)[-1].content.startswith(ASKED.content)
    for payload in (strange, {"choices": [strange], "output": [strange], "content": [strange]}, {"choices": strange}):
        assert isinstance(wire.answer(payload), list)
    events = [
        {"type": kind, "index": 0, "output_index": 0, "item": strange, "delta": strange, "content_block": strange}
        for kind in ("content_block_start", "content_block_delta", "response.output_item.added", 3)
    ]
    assert isinstance(wire.streamed([*events, {"choices": [{"delta": strange}, strange]}, {"choices": strange}]), list)


@pytest.mark.parametrize(
    ("url", "body", "name"),
    [
        ("/chat/completions", {"messages": []}, "openai.chat"),
        ("http://localhost/openai/deployments/d/chat/completions?api-version=1", {"messages": []}, "openai.chat"),
        ("/responses", {"input": "Hi"}, "openai.responses"),
        ("/responses?beta=true", {"input": []}, "openai.responses"),
        ("/responses", {"prompt": {"id": "p"}}, "openai.responses"),
        ("/v1/messages", {"messages": iter(())}, "anthropic.messages"),
        ("/v1/messages?beta=true", {"messages": ()}, "anthropic.messages"),
        ("/v1/messages/count_tokens", {"messages": []}, None),
        ("/v1/messages/batches", {"requests": []}, None),
        ("/responses/input_tokens", {"input": "Hi"}, None),
        ("/responses/compact", {"input": "Hi"}, None),
        ("/embeddings", {"input": "Hi"}, None),
        ("/threads/t/messages", {"role": "user"}, None),
        ("/chat/completions/c", {"metadata": {}}, None),
        ("/chat/completions", None, None),
        ("/chat/completions", {"messages": "Hi"}, None),
        ("/v1/messages", {"messages": {}}, None),
        ("/responses", {"input": 3}, None),
        ("/responses", b"bytes", None),
    ],
)
def test_only_model_conversations_have_a_wire_format(url, body, name):
    wire = wire_of(url, body)
    assert (wire.name if wire else None) == name


@pytest.fixture(scope="module")
def vendor() -> Iterator[LLMVendor]:
    vendor = LLMVendor()
    vendor.start()
    yield vendor
    vendor.stop()


def chat_loop(vendor: LLMVendor, passed: Callable[[Any, Any], None]) -> None:
    with openai_client(vendor, passed) as client:
        first = client.chat.completions.create(model="scripted-1", messages=[QUESTION])  # type: ignore[list-item]
        messages: Any = (item for item in [QUESTION, first.choices[0].message, CHAT_RESULT])
        client.chat.completions.create(model="scripted-1", messages=messages)


def responses_loop(vendor: LLMVendor, passed: Callable[[Any, Any], None]) -> None:
    with openai_client(vendor, passed) as client:
        first = client.responses.create(model="scripted-1", input=QUESTION["content"])
        items: Any = [QUESTION, *first.output, RESPONSES_RESULT]
        client.responses.create(model="scripted-1", input=items)


def messages_loop(vendor: LLMVendor, passed: Callable[[Any, Any], None]) -> None:
    with anthropic_client(vendor, passed) as client:
        first = client.messages.create(model="scripted-1", max_tokens=9, messages=[QUESTION])  # type: ignore[list-item]
        answer: Any = {"role": "assistant", "content": first.content}
        messages: Any = (item for item in [QUESTION, answer, MESSAGES_RESULT])
        client.messages.create(model="scripted-1", max_tokens=9, messages=messages)


@pytest.mark.parametrize("loop", [chat_loop, responses_loop, messages_loop])
def test_an_answer_object_sent_back_is_the_same_turn(vendor, loop):
    vendor.replies += [says("", calls=[call("get_weather", city="Lisbon")], thinking="Hm"), "It is sunny"]
    read: list[tuple[list[Turn], list[Turn]]] = []

    def passed(options: Any, answer: Any) -> None:
        body = options.json_data
        wire = wire_for(options.url, body)
        # The SDK has used up the caller's iterator by now; what it sent is with the vendor.
        sent = vendor.requests[-1].body
        assert wire.answer(answer) == wire.answer(answer.to_dict())
        read.append((wire.turns(sent), wire.answer(answer)))

    loop(vendor, passed)
    model = {"model": "scripted-1"}
    (asked, called), (history, answered) = read
    assert asked == [ASKED]
    assert called == [Turn("assistant", "", {**CALLS, **model})]
    assert history == [ASKED, CALLED, RESULT]
    assert answered == [Turn("assistant", "It is sunny", model)]


def test_every_choice_of_an_answer_is_a_turn(vendor):
    answers: list[Any] = []
    vendor.replies.append("It is sunny")
    with openai_client(vendor, lambda _, answer: answers.append(answer)) as client:
        client.chat.completions.create(model="scripted-1", messages=[QUESTION], n=2)  # type: ignore[list-item]
    turns = wire_for(CHAT, {"messages": []}).answer(answers[0])
    assert [turn.content for turn in turns] == ["It is sunny", "It is sunny (2)"]
