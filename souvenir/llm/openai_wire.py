"""OpenAI's chat completions, which vLLM, llama.cpp, LM Studio and others speak too. Importing this takes a second."""

from __future__ import annotations

import logging
from typing import Any

import httpx2
import openai

from souvenir.llm.connections import CONNECT_TIMEOUT_S
from souvenir.llm.endpoint import Endpoint
from souvenir.llm.schema import instructions
from souvenir.llm.wire import Answer, Dialect, Ending, Failure, Mode, NoAnswer, Question, count, envelope, text_of

NO_KEY = "none"
"""Sent where there is no key: the SDK wants one, and servers without keys do not look."""

# At its finer levels the SDK logs what it sends.
logging.getLogger("openai").setLevel(logging.WARNING)


class OpenAIWire:
    errors: tuple[type[Exception], ...] = (openai.OpenAIError, httpx2.HTTPError)

    def __init__(self, endpoint: Endpoint, client: httpx2.Client) -> None:
        self.dialect = Dialect(completion_tokens=endpoint.own)
        self._endpoint = endpoint
        self._client = openai.OpenAI(
            base_url=endpoint.base_url, api_key=endpoint.api_key or NO_KEY, max_retries=0, http_client=client
        )

    def send(self, question: Question, dialect: Dialect, timeout_s: float) -> bytes:
        system = question.system
        if dialect.mode is not Mode.SCHEMA or not self._endpoint.own:
            system += "\n\n" + instructions(question.schema)
        messages: Any = [{"role": "system", "content": system}, *question.messages]
        response = self._client.chat.completions.with_raw_response.create(
            model=self._endpoint.model,
            messages=messages,
            response_format=_format(question, dialect.mode),
            temperature=0 if dialect.temperature else openai.omit,
            max_completion_tokens=question.max_tokens if dialect.completion_tokens else openai.omit,
            max_tokens=openai.omit if dialect.completion_tokens else question.max_tokens,
            timeout=openai.Timeout(timeout_s, connect=min(CONNECT_TIMEOUT_S, timeout_s)),
        )
        return response.http_response.content

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

    def failure(self, error: Exception) -> Failure:
        if isinstance(error, openai.APIStatusError):
            words = f"{error.message} {error.code} {error.param}".lower()
            return Failure(error.status_code, error.response.headers, words)
        return Failure()


def _format(question: Question, mode: Mode) -> Any:
    match mode:
        case Mode.SCHEMA:
            named = {"name": question.schema["title"], "schema": question.schema, "strict": True}
            return {"type": "json_schema", "json_schema": named}
        case Mode.JSON:
            return {"type": "json_object"}
    return openai.omit
