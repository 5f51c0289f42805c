"""Ollama's own `/api/chat`: its `/v1` cannot set `num_ctx`, and silently drops text beyond the default window."""

from __future__ import annotations

from threading import Lock
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

BYTES_PER_TOKEN = 3
"""Fewer than in English (4) and as many as in a Chinese character, so that the window is rather too large than too
small.
"""

WINDOW_STEP = 4096
"""Windows grow in steps, since Ollama reloads the model for each size."""


class OllamaWire:
    dialect = Dialect()
    path = "/api/chat"

    def __init__(self, endpoint: LLMEndpoint) -> None:
        self.headers = bearer(endpoint.api_key)
        self._endpoint = endpoint
        self._window = 0
        self._growing = Lock()

    def request(self, question: Question, dialect: Dialect) -> dict[str, Any]:
        system = f"{question.system}\n\n{instructions(question.schema)}"
        messages = [{"role": "system", "content": system}, *question.messages]
        options: dict[str, Any] = {"num_predict": question.max_tokens, "num_ctx": self._window_for(question, system)}
        if dialect.temperature:
            options["temperature"] = 0
        body: dict[str, Any] = {
            "model": self._endpoint.model,
            "messages": messages,
            "stream": False,
            # Fail instead of dropping text that does not fit; older versions ignore both.
            "truncate": False,
            "shift": False,
            "options": options,
        }
        if dialect.mode is not Mode.TEXT:
            body["format"] = question.schema if dialect.mode is Mode.SCHEMA else "json"
        return body

    def read(self, body: bytes) -> Answer:
        content = envelope(body)
        message, model = content.get("message"), content.get("model")
        if not isinstance(message, dict) or content.get("done") is not True:
            raise NoAnswer
        return Answer(
            text_of(message.get("content")),
            Ending.CUT if content.get("done_reason") == "length" else Ending.DONE,
            count(content.get("prompt_eval_count")),
            count(content.get("eval_count")),
            model if isinstance(model, str) else None,
        )

    def _window_for(self, question: Question, system: str) -> int:
        size = len(system.encode()) + sum(len(turn.text.encode()) for turn in question.turns)
        tokens = size // BYTES_PER_TOKEN + question.max_tokens
        with self._growing:
            self._window = max(self._window, -(-tokens // WINDOW_STEP) * WINDOW_STEP)
            return self._window
