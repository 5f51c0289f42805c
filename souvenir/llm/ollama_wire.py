"""Ollama's own `/api/chat`: its `/v1` cannot set `num_ctx`, and silently drops what goes beyond the default window."""

from __future__ import annotations

from threading import Lock
from typing import Any

import httpx2

from souvenir.llm.connections import CONNECT_TIMEOUT_S
from souvenir.llm.endpoint import Endpoint
from souvenir.llm.schema import instructions
from souvenir.llm.wire import Answer, Dialect, Ending, Failure, Mode, NoAnswer, Question, count, envelope, text_of

BYTES_PER_TOKEN = 3
"""Fewer than English has (4) and as many as a Chinese character; so the window is rather too large than too small."""

WINDOW_STEP = 4096
"""Windows grow in steps, since Ollama loads the model anew for each size."""


class OllamaWire:
    dialect = Dialect()
    errors: tuple[type[Exception], ...] = (httpx2.HTTPError,)

    def __init__(self, endpoint: Endpoint, client: httpx2.Client) -> None:
        self._endpoint = endpoint
        self._client = client
        self._window = 0
        self._growing = Lock()

    def send(self, question: Question, dialect: Dialect, timeout_s: float) -> bytes:
        system = f"{question.system}\n\n{instructions(question.schema)}"
        messages = [{"role": "system", "content": system}, *question.messages]
        options: dict[str, Any] = {"num_predict": question.max_tokens, "num_ctx": self._window_for(question, system)}
        if dialect.temperature:
            options["temperature"] = 0
        body: dict[str, Any] = {
            "model": self._endpoint.model,
            "messages": messages,
            "stream": False,
            # Say that it does not fit, and drop nothing; older ones do not know these.
            "truncate": False,
            "shift": False,
            "options": options,
        }
        if dialect.mode is not Mode.TEXT:
            body["format"] = question.schema if dialect.mode is Mode.SCHEMA else "json"
        key = self._endpoint.api_key
        response = self._client.post(
            f"{self._endpoint.base_url}/api/chat",
            json=body,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx2.Timeout(timeout_s, connect=min(CONNECT_TIMEOUT_S, timeout_s)),
        )
        if not response.is_success:
            raise httpx2.HTTPStatusError("no success", request=response.request, response=response)
        return response.content

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

    def failure(self, error: Exception) -> Failure:
        if isinstance(error, httpx2.HTTPStatusError):
            response = error.response
            return Failure(response.status_code, response.headers, response.text.lower())
        return Failure()

    def _window_for(self, question: Question, system: str) -> int:
        size = len(system.encode()) + sum(len(turn.text.encode()) for turn in question.turns)
        tokens = size // BYTES_PER_TOKEN + question.max_tokens
        with self._growing:
            self._window = max(self._window, -(-tokens // WINDOW_STEP) * WINDOW_STEP)
            return self._window
