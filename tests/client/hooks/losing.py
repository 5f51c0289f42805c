"""A proxy that loses answers: requests reach the real service and are executed.

A test queues `PASS` for each answer that is to get through.
"""

from __future__ import annotations

from typing import Any

import httpx

from tests.vendors.server import Reply, Request, Server

PASS = "pass"


class LosingServer(Server[Request]):
    """:param url: Of the service behind it."""

    def __init__(self, url: str) -> None:
        super().__init__(Request)
        self._behind = url

    def reply(self, request: Request, queued: Any) -> Reply:
        key = {name: value for name, value in request.headers.items() if name in ("idempotency-key", "x-namespace")}
        answer = httpx.post(self._behind + request.path, json=request.body, headers=key)
        assert answer.status_code in (200, 202, 501), answer.text
        return Reply(answer.status_code, answer.json(), hangs_up=None if queued == PASS else "before")
