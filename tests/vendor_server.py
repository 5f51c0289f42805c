"""An embedding vendor on loopback: it speaks the wire of OpenAI and of Ollama, and does what a test tells it to.

Its vectors are those of the fake embedder (tests/fake_embedder.py), folded to the length that is asked for. Replies are
given in the order in which a test queues them; then it answers as a healthy vendor does.
"""

from __future__ import annotations

import base64
import json
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np

from souvenir.types import FloatVector
from tests.fake_embedder import FakeEmbedder

DIM = 256


@dataclass(frozen=True)
class Reply:
    """:param body: Bytes are sent as they are, all else as JSON; with None and 200 it answers as a healthy vendor does.

    :param waits: The answer is not begun before the server is told to go on.
    :param drips: A byte at a time, without an end.
    """

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    waits: bool = False
    drips: bool = False


@dataclass(frozen=True)
class Request:
    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

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


class VendorServer:
    """Listens from `start` to `stop`, and again on the same port after the next `start`.

    :param max_text_chars: Longer texts are refused, in Ollama's words.
    :param base64: Whether it knows `encoding_format`; servers that do not send lists of numbers.
    """

    def __init__(self, *, max_text_chars: int = 100_000, base64: bool = True) -> None:
        self.requests: list[Request] = []
        self.replies: deque[Reply] = deque()
        self.arrived = threading.Semaphore(0)
        self.go_on = threading.Event()
        self.max_text_chars = max_text_chars
        self.base64 = base64
        self.port = 0
        self._server: ThreadingHTTPServer | None = None
        self._changing = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def batches(self) -> list[list[str]]:
        return [request.texts for request in self.requests]

    def start(self) -> None:
        vendor = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                vendor.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.port = self._server.server_address[1]
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        """Refuse connections; those that are open are cut after their next request."""
        self.go_on.set()
        if self._server is not None:
            server, self._server = self._server, None
            server.shutdown()
            server.server_close()

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        if self._server is None:
            handler.close_connection = True
            return
        body = json.loads(handler.rfile.read(int(handler.headers["Content-Length"])))
        with self._changing:
            headers = {name.lower(): value for name, value in handler.headers.items()}
            self.requests.append(Request(handler.path, headers, body))
            reply = self.replies.popleft() if self.replies else Reply()
        self.arrived.release()
        if reply.waits:
            self.go_on.wait(30)
        if reply.body is None and reply.status == 200:
            reply = self._healthy(handler.path, body, reply)
        content = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
        handler.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **reply.headers}.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(10**9 if reply.drips else len(content)))
        handler.end_headers()
        if reply.drips:
            self._drip(handler)
        else:
            handler.wfile.write(content)

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

    def _drip(self, handler: BaseHTTPRequestHandler) -> None:
        try:
            while not self.go_on.wait(0.01):
                handler.wfile.write(b" ")
                handler.wfile.flush()
        except OSError:
            handler.close_connection = True


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
