"""A Hugging Face hub on loopback, with one model of one commit, and a process that asks it.

The hub's client reads its settings when it is imported, so whoever shall ask this one is a process of its own.
"""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass(frozen=True)
class RunningHub:
    """:param asked: Every path that it was asked for."""

    url: str
    asked: list[str]


@contextmanager
def serving(folder: Path) -> Iterator[RunningHub]:
    """A hub whose model `org/small` is that of the folder."""
    asked: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Hub, folder=folder, asked=asked))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield RunningHub(f"http://127.0.0.1:{server.server_port}", asked)
    finally:
        server.shutdown()
        server.server_close()


def said_by_another_process(script: str, hub: str, *arguments: object) -> str:
    """What a script prints that runs with the hub at this address."""
    environment = os.environ | {"HF_HUB_OFFLINE": "0", "HF_ENDPOINT": hub, "NO_PROXY": "127.0.0.1"}
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()


class Hub(BaseHTTPRequestHandler):
    """As much of the Hugging Face hub as a download asks for."""

    def __init__(self, *arguments: Any, folder: Path, asked: list[str]) -> None:
        self._folder = folder
        self._asked = asked
        super().__init__(*arguments)

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        self._asked.append(path)
        files = {file.relative_to(self._folder).as_posix(): file for file in self._folder.rglob("*") if file.is_file()}
        if path.startswith("/api/models/org/small/revision/"):
            self._answer(json.dumps({"id": "org/small", "sha": COMMIT, "siblings": []}).encode())
        elif path.startswith("/api/models/org/small/tree/"):
            tree = [
                {"type": "file", "path": name, "size": file.stat().st_size, "oid": f"{place:040x}"}
                for place, (name, file) in enumerate(files.items())
            ]
            self._answer(json.dumps(tree).encode())
        elif (name := path.removeprefix(f"/org/small/resolve/{COMMIT}/")) in files:
            self._answer(files[name].read_bytes(), ETag=f'"{name}"', **{"X-Repo-Commit": COMMIT})
        else:
            self.send_error(404)

    def do_HEAD(self) -> None:
        self.do_GET()

    def _answer(self, body: bytes, **headers: str) -> None:
        self.send_response(200)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass
