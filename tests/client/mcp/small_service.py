"""A program that the bridge accepts as the service: the required interface only, and quick to start.

    small_service.py FOLDER

It records each request in the folder, locks the folder, and finishes running requests on a shutdown request.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])


def tell(line: str) -> None:
    with (FOLDER / "told").open("a", encoding="utf-8") as told:
        told.write(line + "\n")


class Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._answer({"service": "memories"} if self.path == "/health" else {"ready": True})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        tell(f"asked {asked['id']} {self.headers.get('X-API-Key')}")
        while asked["method"] == "wait" and not (FOLDER / "go on").exists():
            threading.Event().wait(0.01)
        self._answer({"jsonrpc": "2.0", "id": asked["id"], "result": self._state()})

    def _state(self) -> dict[str, Any]:
        namespace = self.headers.get("X-Namespace")
        return {"pid": os.getpid(), "namespace": namespace, "path": self.path, "own": os.environ.get("USER_ID")}

    def _answer(self, body: dict[str, Any]) -> None:
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


class Listener(ThreadingHTTPServer):
    daemon_threads = False


def main() -> None:
    if (FOLDER / "refuse").exists():
        sys.exit("The setting PORT cannot be used: it is odd")
    with (FOLDER / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        listener = Listener((os.environ["HOST"], int(os.environ["PORT"])), Handler)
        signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=listener.shutdown).start())
        tell(f"started {os.getpid()}")
        listener.serve_forever(0.01)
        listener.server_close()
        tell(f"ended {os.getpid()}")


if __name__ == "__main__":
    main()
