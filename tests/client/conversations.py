"""One conversation with a tool call, in every wire format."""

from __future__ import annotations

from typing import Any

from souvenir_client.interception.wires import Turn, Wire, wire_of

CHAT, RESPONSES, MESSAGES = "/chat/completions", "/responses", "/v1/messages"

QUESTION = {"role": "user", "content": "What is the weather in Lisbon?"}
ASKED = Turn("user", "What is the weather in Lisbon?")
CALLS = {"tool_calls": [{"id": "call_1", "name": "get_weather", "arguments": '{"city": "Lisbon"}'}]}
CALLED = Turn("assistant", "", CALLS)
RESULT = Turn("tool", "Sunny", {"tool_result": {"tool_call_id": "call_1", "name": "get_weather"}})

CHAT_CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Lisbon"}'}}
    ],
}
CHAT_RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "Sunny"}
RESPONSES_CALL = {
    "type": "function_call",
    "call_id": "call_1",
    "name": "get_weather",
    "arguments": '{"city": "Lisbon"}',
}
RESPONSES_RESULT = {"type": "function_call_output", "call_id": "call_1", "output": "Sunny"}
MESSAGES_CALL = {
    "role": "assistant",
    "content": [{"type": "tool_use", "id": "call_1", "name": "get_weather", "input": {"city": "Lisbon"}}],
}
MESSAGES_RESULT = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "Sunny"}],
}


def wire_for(url: str, body: dict[str, Any]) -> Wire:
    wire = wire_of(url, body)
    assert wire is not None
    return wire
