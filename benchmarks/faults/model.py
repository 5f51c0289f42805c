"""A language model on loopback, on Ollama's wire: every sentence is a fact to add, and a move becomes a residence."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_TURN = re.compile(r"^\[\d+\] \([^)]*\): (.*?)(?=^\[\d+\] \(|^</transcript>)", re.MULTILINE | re.DOTALL)
_FACT = re.compile(r"^\[(\d+)\] \(", re.MULTILINE)
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")
_MOVED = re.compile(r"Alice moved to Lisbon with [a-z0-9 ]+")


def reply(prompt: str, user: str) -> Any:
    """The answer to a prompt of the service."""
    if prompt == "decide":
        numbers = [int(number) for number in _FACT.findall(user.partition("</facts>")[0])]
        return {"decisions": [{"fact": number, "verdict": "ADD", "reason": "It is new."} for number in numbers]}
    if prompt == "describe":
        claim = {"kind": "relation", "concept": "Alice", "other": "Lisbon", "text": "lives_in", "confidence": 0.9}
        return {"claims": [{**claim, "quote": quote} for quote in _MOVED.findall(user)]}
    said = [sentence.strip() for turn in _TURN.findall(user) for sentence in _SENTENCE.findall(turn)]
    return {"facts": [{"category": "DETAIL", "text": one, "quote": one, "when": None} for one in said if one]}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        [user] = [message["content"] for message in body["messages"] if message["role"] == "user"]
        content = json.dumps(reply(body["format"]["title"], user))
        said = {
            "model": body["model"],
            "created_at": "2026-01-01T00:00:00Z",
            "message": {"role": "assistant", "content": content},
            "done": True,
            "done_reason": "stop",
            "prompt_eval_count": 100,
            "eval_count": 20,
        }
        answer = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


class _Listener(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore the connections that a killed service left."""


@contextmanager
def scripted_model() -> Iterator[dict[str, str]]:
    """Run the model; the value is the settings of a service that uses it."""
    server = _Listener(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield {
            "EXTRACT_PROVIDER": "ollama",
            "EXTRACT_BASE_URL": f"http://127.0.0.1:{server.server_address[1]}",
            "EXTRACT_MODEL": "scripted",
        }
    finally:
        server.shutdown()
        server.server_close()
