"""An embedding vendor on loopback: it speaks the wire of OpenAI and of Ollama, and does what a test tells it to.

Its vectors are those of the fake embedder (tests/fake_embedder.py), folded to the length that is asked for. Where no
reply is queued, or one without a body, it answers as a healthy vendor does.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from souvenir.core.types import FloatVector
from tests.fake_embedder import FakeEmbedder
from tests.vendors.server import Reply, Request, Server

DIM = 256


class EmbeddingRequest(Request):
    @property
    def texts(self) -> list[str]:
        return list(self.body["input"])


def openai_error(status: int, message: str, code: str | None = None, **headers: str) -> Reply:
    """As OpenAI writes them: https://platform.openai.com/docs/guides/error-codes."""
    body = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}
    return Reply(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


def ollama_error(status: int, message: str) -> Reply:
    """As Ollama writes them below /v1."""
    return Reply(status, {"error": {"message": message, "type": "api_error", "param": None, "code": None}})


class VendorServer(Server[EmbeddingRequest]):
    """:param max_text_chars: Longer texts are refused, in Ollama's words.

    :param base64: Whether it knows `encoding_format`; servers that do not send lists of numbers.
    """

    def __init__(self, *, max_text_chars: int = 100_000, base64: bool = True) -> None:
        super().__init__(EmbeddingRequest)
        self.max_text_chars = max_text_chars
        self.base64 = base64

    @property
    def batches(self) -> list[list[str]]:
        return [request.texts for request in self.requests]

    def reply(self, request: EmbeddingRequest, queued: Any) -> Reply:
        reply: Reply = queued or Reply()
        if reply.body is None and reply.status == 200:
            return self._healthy(request.path, request.body, reply)
        return reply

    def _healthy(self, path: str, body: dict[str, Any], reply: Reply) -> Reply:
        if path != "/v1/embeddings":
            return Reply(404, b"404 page not found", {"Content-Type": "text/plain"})
        texts = body["input"]
        if not texts or any(not text for text in texts):
            return openai_error(400, "'$.input' is invalid. Please check the API reference.")
        if any(len(text) > self.max_text_chars for text in texts):
            return ollama_error(400, "the input length exceeds the context length")
        vectors = vectors_of(texts, body.get("dimensions", DIM))
        content = answer(vectors, as_base64=self.base64 and body.get("encoding_format") == "base64")
        return replace(reply, body=content)


def vectors_of(texts: Sequence[str], dim: int = DIM) -> FloatVector:
    """What the vendor's model says: not of length 1, as OpenAI's are and others' are not."""
    directions = FakeEmbedder().embed_documents(texts)
    folded: FloatVector = 3 * directions.reshape(len(texts), -1, dim).sum(axis=1)
    return folded


def answer(vectors: FloatVector, *, as_base64: bool = False, order: Sequence[int] | None = None) -> dict[str, Any]:
    """The body of a good answer, its entries in the given order."""
    entries = [
        {
            "object": "embedding",
            "index": index,
            "embedding": base64.b64encode(np.asarray(vectors[index], dtype="<f4").tobytes()).decode()
            if as_base64
            else [float(number) for number in vectors[index]],
        }
        for index in (range(len(vectors)) if order is None else order)
    ]
    return {"object": "list", "data": entries, "model": "m", "usage": {"prompt_tokens": 5, "total_tokens": 5}}
