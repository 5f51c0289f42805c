"""A model vendor without latency: one answer in OpenAI's format, plain or streamed, from a separate process."""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from multiprocessing.connection import Connection
from threading import Thread

MODEL = "scripted"
ANSWER = "Alma repaired the kayak in Bergen, after the meeting with the auditors ran late."
STOP_TIMEOUT_S = 30.0

_HEAD = {"id": "chatcmpl-1", "created": 0, "model": MODEL}
_PLAIN = json.dumps(
    {
        **_HEAD,
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": ANSWER}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
    }
).encode()


def _stream() -> bytes:
    deltas = [{"role": "assistant", "content": ""}, *({"content": f"{word} "} for word in ANSWER.split())]
    events = [{**_HEAD, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": one}]} for one in deltas]
    return b"".join(f"data: {event}\n\n".encode() for event in (*map(json.dumps, events), "[DONE]"))


_STREAMED = _stream()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        body, kind = (_STREAMED, "text/event-stream") if asked.get("stream") else (_PLAIN, "application/json")
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving() -> Iterator[str]:
    """Its address, until the block ends."""
    processes = multiprocessing.get_context("spawn")
    ours, theirs = processes.Pipe()
    process = processes.Process(target=_serve, args=(theirs,))
    process.start()
    try:
        yield f"http://127.0.0.1:{ours.recv()}/v1"
    finally:
        ours.send(None)
        process.join(STOP_TIMEOUT_S)


def _serve(channel: Connection) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    channel.send(server.server_port)
    channel.recv()
    server.shutdown()
    server.server_close()
