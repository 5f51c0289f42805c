"""A recording proxy for a language model: it forwards prompts and records replies, or replays recorded ones.

A reply is kept under its prompt's name and the sha256 of the request without the model's name, a line each in a file. A
recording holds what a model said about the texts: it is as private as they are. Its first line says whose wire it is.
Each request is answered in a thread of its own. A question that came twice has two replies, which are given in turn.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock, Thread
from typing import Any, Protocol
from urllib.parse import urlsplit

import httpx2

MAX_REQUEST_BYTES = 8 * 1024 * 1024
POLL_S = 0.02
"""Between looks at whether to stop."""
_NOT_FORWARDED = frozenset({"host", "content-length", "connection", "accept-encoding"})


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as it came over the wire."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def prompt(self) -> str:
        """The name of the prompt: the title of the schema that an answer must fit. Empty where there is none."""
        return next(_titles(self.body), "")

    @property
    def digest(self) -> str:
        """The same for the same question, whoever is asked."""
        said = {name: value for name, value in self.body.items() if name != "model"}
        return hashlib.sha256(json.dumps([self.path, said], sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Reply:
    status: int
    body: Any


class Answerer(Protocol):
    """Safe to call from many threads."""

    def answer(self, asked: Asked) -> Reply: ...


class Recording:
    """Replies by prompt and digest in the order in which they came, and whose they are.

    :param provider: Whose wire they speak, as EXTRACT_PROVIDER names it.
    """

    def __init__(self, provider: str, model: str, replies: Mapping[tuple[str, str], Sequence[Reply]]) -> None:
        self.provider = provider
        self.model = model
        self._replies = replies

    @classmethod
    def read(cls, path: Path) -> Recording:
        """:raises ValueError: If this is no recording."""
        lines = path.read_text(encoding="utf-8").splitlines()
        replies: defaultdict[tuple[str, str], list[Reply]] = defaultdict(list)
        try:
            head = json.loads(lines[0])
            for kept in map(json.loads, lines[1:]):
                replies[kept["prompt"], kept["sha256"]].append(Reply(kept["status"], kept["body"]))
            return cls(head["provider"], head["model"], replies)
        except (LookupError, TypeError, ValueError) as error:
            raise ValueError(f"{path} is no recording of --record") from error

    def __len__(self) -> int:
        return sum(map(len, self._replies.values()))

    def get(self, asked: Asked, times: int) -> Reply | None:
        """The reply to a question that was answered so often before; after the last one, the last one again."""
        replies = self._replies.get((asked.prompt, asked.digest))
        return replies[min(times, len(replies) - 1)] if replies else None


class Player:
    """Gives kept replies; what was not kept goes to the other one, if there is one.

    :ivar missed: How many questions had no kept reply.
    """

    def __init__(self, recording: Recording, otherwise: Answerer | None = None) -> None:
        self._recording = recording
        self._otherwise = otherwise
        self._times: Counter[str] = Counter()
        self._lock = Lock()
        self.missed = 0

    def answer(self, asked: Asked) -> Reply:
        with self._lock:
            kept = self._recording.get(asked, self._times[asked.digest])
            self._times[asked.digest] += 1
            self.missed += kept is None
        if kept is not None:
            return kept
        if self._otherwise is not None:
            return self._otherwise.answer(asked)
        return Reply(400, {"error": {"message": "no reply was recorded for this question", "type": "not_recorded"}})


class Recorder:
    """Passes questions on and keeps what comes back if it is an answer; a vendor's failure is passed on only.

    :param origin: Scheme, host and port of the model's server.
    """

    def __init__(self, path: Path, *, provider: str, model: str, origin: str, timeout_s: float) -> None:
        self._origin = origin
        self._client = httpx2.Client(timeout=timeout_s, follow_redirects=False)
        self._lock = Lock()
        self._file = path.open("w", encoding="utf-8")
        self._write({"provider": provider, "model": model})

    def answer(self, asked: Asked) -> Reply:
        headers = {name: value for name, value in asked.headers.items() if name.lower() not in _NOT_FORWARDED}
        try:
            response = self._client.post(self._origin + asked.path, headers=headers, json=dict(asked.body))
            reply = Reply(response.status_code, response.json())
        except (httpx2.HTTPError, ValueError) as error:
            return Reply(502, {"error": {"message": f"the model's server gave no answer: {type(error).__name__}"}})
        if reply.status == 200:
            self._write({"prompt": asked.prompt, "sha256": asked.digest, "status": reply.status, "body": reply.body})
        return reply

    def close(self) -> None:
        self._client.close()
        self._file.close()

    def _write(self, value: Any) -> None:
        with self._lock:
            self._file.write(json.dumps(value, ensure_ascii=False) + "\n")
            self._file.flush()


@contextmanager
def listening(answerer: Answerer) -> Iterator[str]:
    """The answerer behind a free loopback port, by its origin, until the block ends."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(answerer))
    thread = Thread(target=server.serve_forever, args=(POLL_S,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def origin_of(url: str) -> tuple[str, str]:
    """Scheme, host and port of an address, and its path."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}", parts.path


def _titles(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if "properties" in value and isinstance(value.get("title"), str):
            yield value["title"]
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from _titles(one)


def _handler(answerer: Answerer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # One packet a reply: a second one waits 40 ms for the acknowledgement of the first.
        wbufsize = -1

        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            if length > MAX_REQUEST_BYTES:
                self._send(Reply(413, {"error": {"message": "the request is too large"}}))
                return
            try:
                body = json.loads(self.rfile.read(length))
            except ValueError:
                self._send(Reply(400, {"error": {"message": "the request is no JSON"}}))
                return
            self._send(answerer.answer(Asked(self.path, dict(self.headers), body)))

        def _send(self, reply: Reply) -> None:
            content = json.dumps(reply.body, ensure_ascii=False).encode()
            self.send_response(reply.status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Nothing is logged: questions are as private as what they are about."""

    return Handler
