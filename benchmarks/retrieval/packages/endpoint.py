"""An OpenAI-compatible embeddings endpoint on a free port of this machine, over our own model."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import numpy as np

from benchmarks.retrieval.vector_cache import CachedEmbedder
from souvenir.core.types import FloatVector

MODEL_NAME = "benchmark"


@contextmanager
def serving(embedder: CachedEmbedder) -> Iterator[str]:
    """The address, with /v1. A text that is longer than the model's window is cut, as its makers do."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
            vectors = embedder.embed_documents([embedder.first_window(text) for text in texts])
            body = json.dumps(_answer(vectors, asked.get("encoding_format", "float"))).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: a line a text helps nobody."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()


def _answer(vectors: FloatVector, encoding: str) -> dict[str, Any]:
    return {
        "object": "list",
        "model": MODEL_NAME,
        "data": [
            {"object": "embedding", "index": index, "embedding": _encoded(vector, encoding)}
            for index, vector in enumerate(vectors)
        ],
        "usage": {"prompt_tokens": 0, "total_tokens": 0},
    }


def _encoded(vector: FloatVector, encoding: str) -> Sequence[float] | str:
    if encoding == "base64":
        return base64.b64encode(vector.astype(np.float32).tobytes()).decode()
    numbers: list[float] = vector.tolist()
    return numbers
