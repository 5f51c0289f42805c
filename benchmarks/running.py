"""Applications that are served from a thread of this process, for benchmarks of its CPU time."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread

import uvicorn
from starlette.types import ASGIApp

from benchmarks.service import START_TIMEOUT_S, free_port


@contextmanager
def serving(app: ASGIApp) -> Iterator[int]:
    """Serve an application from a thread; its port."""
    port = free_port()
    config = uvicorn.Config(
        app, host="127.0.0.1", port=port, http="httptools", loop="uvloop", log_config=None, access_log=False
    )
    server = uvicorn.Server(config)
    thread = Thread(target=server.run, name=f"server-{port}")
    thread.start()
    try:
        while not server.started:
            if not thread.is_alive():
                raise RuntimeError("the server did not start")
            time.sleep(0.02)
        yield port
    finally:
        server.should_exit = True
        thread.join()


def wait_until_ready(port: int) -> None:
    """:raises TimeoutError: If model and index are not loaded in time."""
    client, deadline = http.client.HTTPConnection("127.0.0.1", port), time.monotonic() + START_TIMEOUT_S
    while time.monotonic() < deadline:
        client.request("GET", "/health/ready")
        response = client.getresponse()
        response.read()
        if response.status == 200:
            client.close()
            return
        time.sleep(0.5)
    raise TimeoutError("the service did not get ready")
