"""An MCP service on loopback, scripted by a test; without a scripted reply it echoes the request."""

from __future__ import annotations

import json
import threading
from typing import Any

from tests.vendors.server import Reply, Request, Server

AGREED = "2025-06-18"


class ScriptedMcp(Server[Request]):
    """:ivar holds: Whether every answer waits until the server is told to go on.

    :ivar most_at_once: Requests that were worked on at one time.
    :ivar get: What it answers at a path.
    """

    def __init__(self) -> None:
        super().__init__(Request)
        self.holds = False
        self.most_at_once = 0
        self.get: dict[str, Any] = {}
        self._at_once = 0
        self._counting = threading.Lock()

    def reply(self, request: Request, queued: Any) -> Reply:
        if request.path in self.get:
            return Reply(200, self.get[request.path])
        with self._counting:
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            reply: Reply = queued or self._echo(request)
            if reply.waits or self.holds:
                self.go_on.wait(30)
            return reply
        finally:
            with self._counting:
                self._at_once -= 1

    def _echo(self, request: Request) -> Reply:
        if "id" not in request.body or "method" not in request.body:
            return Reply(202, b"")
        result: dict[str, Any] = {"asked": request.body["method"], "params": request.body.get("params")}
        if request.body["method"] == "initialize":
            result["protocolVersion"] = AGREED
        return Reply(200, answer(request.body["id"], **result))

    def begin(self) -> None:
        """As if nothing had been asked yet."""
        self.requests.clear()
        self.replies.clear()
        self.go_on.clear()
        self.arrived = threading.Semaphore(0)
        self.most_at_once = 0
        self.holds = False


def answer(request_id: int | str | None, **result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def progress(token: str, done: int) -> dict[str, Any]:
    params = {"progressToken": token, "progress": done}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


def stream(*messages: dict[str, Any], **more: Any) -> Reply:
    """Server-sent events, with what a service sends between them."""
    events = [f"event: message\r\ndata: {json.dumps(one)}\r\n\r\n" for one in messages]
    body = ": ping\r\n\r\n".join(events).encode()
    return Reply(200, body, {"Content-Type": "text/event-stream"}, **more)


def refusal(status: int, code: str, detail: str, **headers: str) -> Reply:
    """As every route of the service says no but that of MCP."""
    body = {"detail": detail, "code": code, "request_id": "r1"}
    return Reply(status, body, {name.replace("_", "-"): value for name, value in headers.items()})


def mcp_refusal(status: int, code: str, sentence: str, **headers: str) -> Reply:
    """As that of MCP says no before it looks at the message."""
    error = {"code": -32600, "message": sentence, "data": {"code": code, "request_id": "r1"}}
    body = {"jsonrpc": "2.0", "id": None, "error": error}
    return Reply(status, body, {name.replace("_", "-"): value for name, value in headers.items()})
