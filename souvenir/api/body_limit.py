"""Refuses bodies above a size: by what they declare before anything is read, else by what arrives."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from souvenir.api.errors import error_response
from souvenir.errors import PayloadTooLarge


class BodyLimit:
    """ASGI middleware. What is beyond the limit is never held in memory."""

    def __init__(self, app: ASGIApp, max_body_bytes: int, max_bytes_of: Mapping[str, int]) -> None:
        """:param max_bytes_of: By path, for those that have a limit of their own."""
        self._app = app
        self._max_body_bytes = max_body_bytes
        self._max_bytes_of = max_bytes_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        max_bytes = self._max_bytes_of.get(scope["path"], self._max_body_bytes)
        error = PayloadTooLarge(max_bytes)
        declared = Headers(scope=scope).get("content-length", "0")
        if declared.isascii() and declared.isdigit() and (len(declared) > 18 or int(declared) > max_bytes):
            scope["state"]["error_code"] = error.code
            return await error_response(scope["state"], error.status, error.code, error.message)(scope, receive, send)
        received_bytes = 0

        async def counted_receive() -> Message:
            nonlocal received_bytes
            message = await receive()
            received_bytes += len(message.get("body", b""))
            if received_bytes > max_bytes:
                # FastAPI lets this one class through from where it reads the body.
                raise HTTPException(error.status, error.message)
            return message

        return await self._app(scope, counted_receive, send)
