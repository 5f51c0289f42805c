"""Sends calls over one httpx client, and retries those that are safe to repeat."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx

from souvenir_client.calls import (
    Address,
    Call,
    failure_of,
    line_of,
    pause_before_repeat,
    raise_for,
    request_of,
    result_of,
)
from souvenir_client.errors import ApiError

Result = TypeVar("Result")


class AsyncTransport:
    """:param http: Closed by its owner."""

    def __init__(self, http: httpx.AsyncClient, address: Address) -> None:
        self.http = http
        self.address = address

    async def send(self, call: Call[Result], *, timeout_s: float | None = None) -> Result:
        """Send the call and decode its answer.

        :param timeout_s: Overrides the timeout of the client.
        :raises SouvenirError: See souvenir_client.errors.
        """
        request = self._request(call, timeout_s or self.address.timeout_s)
        for attempt in range(self.address.max_retries + 1):
            try:
                response = await self.http.send(request)
                return result_of(call, response, self.address)
            except (httpx.HTTPError, ApiError) as error:
                pause_s = pause_before_repeat(call, error, attempt)
                if pause_s is None or attempt == self.address.max_retries:
                    if isinstance(error, ApiError):
                        raise
                    raise failure_of(error, self.address, timeout_s or self.address.timeout_s) from error
            await asyncio.sleep(pause_s)
        raise AssertionError("the last attempt returns or raises")

    async def lines(self, call: Call[Any]) -> AsyncIterator[dict[str, Any]]:
        """Stream the lines of an NDJSON answer; never retried."""
        async with self._streamed(call) as response:
            async for line in _lines_of(response):
                if line:
                    yield line_of(call, line, self.address)

    async def events(self, call: Call[Any]) -> AsyncIterator[dict[str, Any]]:
        """Stream the events of an answer, as `id`, `type` and `data`; never retried."""
        async with self._streamed(call) as response:
            fields: dict[str, str] = {}
            async for line in _lines_of(response):
                name, _, value = line.partition(": ")
                if line:
                    fields[name] = value
                    continue
                if "data" in fields:
                    data = line_of(call, fields["data"], self.address)
                    yield {"id": int(fields["id"]), "type": fields["event"], "data": data}
                fields = {}

    async def pieces(self, call: Call[Any]) -> AsyncIterator[bytes]:
        """Stream the bytes of an answer; never retried."""
        async with self._streamed(call) as response:
            async for piece in response.aiter_bytes():
                if piece:
                    yield piece

    @asynccontextmanager
    async def _streamed(self, call: Call[Any]) -> AsyncIterator[httpx.Response]:
        request = self._request(call, self.address.timeout_s)
        try:
            response = await self.http.send(request, stream=True)
            try:
                if not response.is_success:
                    await response.aread()
                    raise_for(response, self.address)
                yield response
            finally:
                await response.aclose()
        except httpx.HTTPError as error:
            raise failure_of(error, self.address, self.address.timeout_s) from error

    def _request(self, call: Call[Any], timeout_s: float) -> httpx.Request:
        content = None if call.content is None or isinstance(call.content, bytes) else _parts(call.content)
        return self.http.build_request(**request_of(call, self.address, content), timeout=timeout_s)


async def _lines_of(response: httpx.Response) -> AsyncIterator[str]:
    """The lines as JSON lines and server-sent events end them: texts may contain the other line breaks of Unicode."""
    begun: list[bytes] = []
    async for piece in response.aiter_bytes():
        *ends, rest = piece.split(b"\n")
        for end in ends:
            yield b"".join([*begun, end]).removesuffix(b"\r").decode(errors="replace")
            begun = []
        begun.append(rest)
    if last := b"".join(begun):
        yield last.decode(errors="replace")


async def _parts(content: Iterable[bytes]) -> AsyncIterator[bytes]:
    for part in content:
        if part:
            yield part
