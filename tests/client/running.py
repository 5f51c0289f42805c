"""The real service on loopback, in a thread of the tests: real SQLite and FAISS, and the fake embedder."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from threading import Thread
from typing import Any

import uvicorn

from app import create_app
from souvenir.core.settings import Settings
from souvenir.core.types import Embedder
from tests.fake_embedder import FakeEmbedder, fake_of

START_TIMEOUT_S = 60.0
POLL_S = 0.005


class RunningService:
    """Started, stopped and started again over one data folder, on the same port."""

    def __init__(self, data_dir: Path, **settings: Any) -> None:
        """:param settings: A `public_url` of None is that of the service itself."""
        self.port = free_port()
        self._settings = {"data_dir": data_dir, "log_level": "ERROR", **settings}
        if "public_url" in settings and settings["public_url"] is None:
            self._settings["public_url"] = self.url
        self._server: uvicorn.Server | None = None
        self._thread: Thread | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, embedder: Embedder | None = None) -> None:
        app = self.app = create_app(Settings(**self._settings), embedder or FakeEmbedder(), fake_of)
        config = uvicorn.Config(
            app, host="127.0.0.1", port=self.port, log_config=None, access_log=False, timeout_graceful_shutdown=1
        )
        server = uvicorn.Server(config)
        thread = Thread(target=server.run, name="service of the tests", daemon=True)
        thread.start()
        self._server, self._thread = server, thread
        end = time.monotonic() + START_TIMEOUT_S
        while not server.started:
            if not thread.is_alive() or time.monotonic() > end:
                raise RuntimeError("the service of the tests did not start")
            time.sleep(POLL_S)
        app.state.service.loading.join(START_TIMEOUT_S)

    def stop(self) -> None:
        """Connections are cut; nothing answers at the address afterwards."""
        if self._server is None or self._thread is None:
            return
        self._server.should_exit = True
        self._thread.join(START_TIMEOUT_S)
        if self._thread.is_alive():
            raise RuntimeError("the service of the tests did not stop")
        self._server = self._thread = None


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
