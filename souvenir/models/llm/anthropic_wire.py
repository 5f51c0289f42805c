"""Anthropic's messages API. A model without structured outputs is forced to call a tool, whose input is the answer."""

from __future__ import annotations

import json
from typing import Any

from souvenir.models.llm.schema import instructions
from souvenir.models.llm.wire import (
    Answer,
    Dialect,
    Ending,
    Mode,
    NoAnswer,
    Question,
    count,
    envelope,
    text_of,
)
from souvenir.models.providers.endpoints import LLMEndpoint

API_VERSION = "2023-06-01"

_ENDINGS = {
    "max_tokens": Ending.CUT,
    "model_context_window_exceeded": Ending.CUT,
    "refusal": Ending.REFUSED,
}


class AnthropicWire:
    dialect = Dialect()
    path = "/v1/messages"

    def __init__(self, endpoint: LLMEndpoint) -> None:
        key = {"x-api-key": endpoint.api_key} if endpoint.api_key else {}
        self.headers = {"anthropic-version": API_VERSION, **key}
        self._endpoint = endpoint

    def request(self, question: Question, dialect: Dialect) -> dict[str, Any]:
        system = question.system
        if dialect.mode is Mode.TEXT or not self._endpoint.own:
            system += "\n\n" + instructions(question.schema)
        body: dict[str, Any] = {
            "model": self._endpoint.model,
            "system": system,
            "messages": question.messages,
            "max_tokens": question.max_tokens,
        }
        if dialect.temperature:
            body["temperature"] = 0
        match dialect.mode:
            case Mode.SCHEMA:
                body["output_config"] = {"format": {"type": "json_schema", "schema": question.schema}}
            case Mode.JSON:
                name = question.schema["title"]
                body["tools"] = [{"name": name, "description": "Takes the answer.", "input_schema": question.schema}]
                body["tool_choice"] = {"type": "tool", "name": name}
        return body

    def read(self, body: bytes) -> Answer:
        content = envelope(body)
        usage, model, parts = content.get("usage"), content.get("model"), content.get("content")
        if not isinstance(parts, list):
            raise NoAnswer
        ending = _ENDINGS.get(str(content.get("stop_reason")), Ending.DONE)
        # The input of a truncated tool call is incomplete.
        inputs = [part["input"] for part in parts if _is_call(part)] if ending is Ending.DONE else []
        counts = usage if isinstance(usage, dict) else {}
        return Answer(
            json.dumps(inputs[0]) if len(inputs) == 1 else text_of(parts),
            ending,
            sum(count(counts.get(key)) for key in _INPUT_TOKENS),
            count(counts.get("output_tokens")),
            model if isinstance(model, str) else None,
        )


_INPUT_TOKENS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def _is_call(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "tool_use" and "input" in part
