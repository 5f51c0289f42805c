"""OpenAI's chat completions API, which vLLM, llama.cpp, LM Studio and others implement too."""

from __future__ import annotations

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
from souvenir.models.providers.endpoints import LLMEndpoint, bearer


class OpenAIWire:
    path = "/chat/completions"

    def __init__(self, endpoint: LLMEndpoint) -> None:
        self.dialect = Dialect(completion_tokens=endpoint.own)
        self.headers = bearer(endpoint.api_key)
        self._endpoint = endpoint

    def request(self, question: Question, dialect: Dialect) -> dict[str, Any]:
        system = question.system
        if dialect.mode is not Mode.SCHEMA or not self._endpoint.own:
            system += "\n\n" + instructions(question.schema)
        body: dict[str, Any] = {
            "model": self._endpoint.model,
            "messages": [{"role": "system", "content": system}, *question.messages],
            "max_completion_tokens" if dialect.completion_tokens else "max_tokens": question.max_tokens,
        }
        if dialect.temperature:
            body["temperature"] = 0
        match dialect.mode:
            case Mode.SCHEMA:
                named = {"name": question.schema["title"], "schema": question.schema, "strict": True}
                body["response_format"] = {"type": "json_schema", "json_schema": named}
            case Mode.JSON:
                body["response_format"] = {"type": "json_object"}
        return body

    def read(self, body: bytes) -> Answer:
        content = envelope(body)
        try:
            choice = content["choices"][0]
            message, finish = choice["message"], choice.get("finish_reason")
            text, refusal = text_of(message.get("content")), message.get("refusal")
        except (LookupError, TypeError, AttributeError):
            raise NoAnswer from None
        ending = Ending.CUT if finish == "length" else Ending.DONE
        if refusal or finish == "content_filter":
            ending = Ending.REFUSED
        usage, model = content.get("usage"), content.get("model")
        counts = usage if isinstance(usage, dict) else {}
        return Answer(
            text,
            ending,
            count(counts.get("prompt_tokens")),
            count(counts.get("completion_tokens")),
            model if isinstance(model, str) else None,
        )
