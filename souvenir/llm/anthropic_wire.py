"""Anthropic's messages. A model without structured outputs is made to call a tool, whose input is the answer."""

from __future__ import annotations

import json
import logging
from typing import Any

import anthropic
import httpx2

from souvenir.llm.connections import CONNECT_TIMEOUT_S
from souvenir.llm.endpoint import Endpoint
from souvenir.llm.schema import instructions
from souvenir.llm.wire import Answer, Dialect, Ending, Failure, Mode, NoAnswer, Question, count, envelope, text_of

NO_KEY = "none"
"""Without one the SDK would look for keys in places that our settings do not know."""

_ENDINGS = {
    "max_tokens": Ending.CUT,
    "model_context_window_exceeded": Ending.CUT,
    "refusal": Ending.REFUSED,
}

# At its finer levels the SDK logs what it sends.
logging.getLogger("anthropic").setLevel(logging.WARNING)


class AnthropicWire:
    dialect = Dialect()
    errors: tuple[type[Exception], ...] = (anthropic.AnthropicError, httpx2.HTTPError)

    def __init__(self, endpoint: Endpoint, client: httpx2.Client) -> None:
        self._endpoint = endpoint
        self._client = anthropic.Anthropic(
            base_url=endpoint.base_url,
            api_key=endpoint.api_key or NO_KEY,
            max_retries=0,
            http_client=client,
            # Its spans could hold what is said; ours do not.
            open_telemetry=False,
        )

    def send(self, question: Question, dialect: Dialect, timeout_s: float) -> bytes:
        system = question.system
        if dialect.mode is Mode.TEXT or not self._endpoint.own:
            system += "\n\n" + instructions(question.schema)
        messages: Any = question.messages
        response = self._client.messages.with_raw_response.create(
            model=self._endpoint.model,
            system=system,
            messages=messages,
            max_tokens=question.max_tokens,
            # The SDK leaves it to models that still take it.
            extra_body={"temperature": 0} if dialect.temperature else None,
            timeout=anthropic.Timeout(timeout_s, connect=min(CONNECT_TIMEOUT_S, timeout_s)),
            **_format(question, dialect.mode),
        )
        return response.http_response.content

    def read(self, body: bytes) -> Answer:
        content = envelope(body)
        usage, model, parts = content.get("usage"), content.get("model"), content.get("content")
        if not isinstance(parts, list):
            raise NoAnswer
        ending = _ENDINGS.get(str(content.get("stop_reason")), Ending.DONE)
        # The input of a tool call that was cut is what happened to be whole.
        inputs = [part["input"] for part in parts if _is_call(part)] if ending is Ending.DONE else []
        counts = usage if isinstance(usage, dict) else {}
        return Answer(
            json.dumps(inputs[0]) if len(inputs) == 1 else text_of(parts),
            ending,
            sum(count(counts.get(key)) for key in _INPUT_TOKENS),
            count(counts.get("output_tokens")),
            model if isinstance(model, str) else None,
        )

    def failure(self, error: Exception) -> Failure:
        if isinstance(error, anthropic.APIStatusError):
            words = f"{error.message} {error.type} {error.error_code}".lower()
            return Failure(error.status_code, error.response.headers, words)
        return Failure()


_INPUT_TOKENS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def _is_call(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") == "tool_use" and "input" in part


def _format(question: Question, mode: Mode) -> dict[str, Any]:
    match mode:
        case Mode.SCHEMA:
            return {"output_config": {"format": {"type": "json_schema", "schema": question.schema}}}
        case Mode.JSON:
            name = question.schema["title"]
            tool = {"name": name, "description": "Takes the answer.", "input_schema": question.schema}
            return {"tools": [tool], "tool_choice": {"type": "tool", "name": name}}
    return {}
