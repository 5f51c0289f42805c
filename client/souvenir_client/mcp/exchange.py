"""One message to the service, and all that it answers, as it comes.

Invariants: a request gets exactly one answer in the end, the service's or an error that says what to do; what was sent
is sent again only if the service cannot have done it, or if it changes nothing; the answer of one request never reaches
another.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol

import httpx

from souvenir_client.calls import Address, Call, Repeat, failure_of, pause_before_repeat, raise_for
from souvenir_client.errors import AnswerLost, ApiError, SouvenirError, UnreadableAnswer
from souvenir_client.mcp.events import events
from souvenir_client.mcp.messages import LISTEN, NOT_DONE, Answer, Message, error_line, read_answer

MAX_AT_ONCE = 8
"""Requests that the service works on for one bridge; the others wait for their turn."""

MAX_RETRIES = 2

PASSING = frozenset({429, 502, 503, 504})
"""Statuses of what may be better a moment later."""

JSON, EVENT_STREAM = "application/json", "text/event-stream"

Deliver = Callable[[Answer], Awaitable[None]]
"""Takes what the client is told."""


class Target(Protocol):
    """The service, wherever it is."""

    @property
    def address(self) -> Address: ...

    async def ready(self) -> None:
        """Return when it can be asked.

        :raises SouvenirError: If it cannot.
        """
        ...

    def lost(self) -> None:
        """Nobody answered: what is known of it may be wrong by now."""
        ...


@dataclass(slots=True)
class _Delivery:
    """Counts what a request was answered."""

    deliver: Deliver
    count: int = 0

    async def __call__(self, answer: Answer) -> None:
        self.count += 1
        await self.deliver(answer)


class Exchange:
    """:param path: Of the endpoint.

    :param http: Is closed by whoever made it.
    """

    def __init__(self, http: httpx.AsyncClient, target: Target, path: str) -> None:
        self._http, self._target, self._path = http, target, path
        self._agreed: str | None = None
        self._places = asyncio.Semaphore(MAX_AT_ONCE)

    async def ask(self, message: Message, deliver: Deliver) -> None:
        """Send a message and deliver all that comes back.

        :raises SouvenirError: If something went wrong with one that has no answer.
        """
        try:
            await self._until_answered(message, _Delivery(deliver))
        except SouvenirError as error:
            if message.id is None:
                raise
            await deliver(Answer(error_line(message.id, NOT_DONE, str(error), _data(error)), is_last=True))

    async def _until_answered(self, message: Message, delivery: _Delivery) -> None:
        for attempt in range(MAX_RETRIES + 1):
            await self._target.ready()
            try:
                async with self._place(message):
                    await self._send(message, delivery)
                return
            except (httpx.HTTPError, ApiError) as error:
                if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout):
                    self._target.lost()
                pause_s = pause_before_repeat(self._call(message), error, attempt)
                if pause_s is None or attempt == MAX_RETRIES or delivery.count:
                    raise self._failure(message, error) from error
            await asyncio.sleep(pause_s)

    def _place(self, message: Message) -> AbstractAsyncContextManager[object]:
        """One that listens has an answer without an end, and would keep the others out."""
        return nullcontext() if message.method == LISTEN else self._places

    def _call(self, message: Message) -> Call[Any]:
        return Call("POST", self._path, {}, repeat=Repeat.SAFE if message.changes_nothing else Repeat.NEVER)

    def _failure(self, message: Message, error: httpx.HTTPError | ApiError) -> SouvenirError:
        if isinstance(error, ApiError):
            return error
        address = self._target.address
        unsent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
        if not unsent and not message.changes_nothing:
            return AnswerLost(address.url, str(error) or type(error).__name__)
        return failure_of(error, address, address.timeout_s)

    async def _send(self, message: Message, delivery: _Delivery) -> None:
        """:raises httpx.HTTPError: If the connection fails.

        :raises SouvenirError: If what comes back is a no that MCP does not know, or cannot be read.
        """
        url = self._target.address.url + self._path
        async with self._http.stream("POST", url, content=message.line, headers=self._headers(message)) as response:
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if response.is_success and kind == EVENT_STREAM and message.id is not None:
                async for content in events(response.aiter_bytes()):
                    if await self._deliver(content, message, delivery):
                        return
                raise httpx.RemoteProtocolError("the stream ended before the answer")
            content = await response.aread()
            refused = None if response.is_success else _refused(response)
            if refused is None or refused.status_code in PASSING or message.id is None:
                raise_for(refused or response, self._target.address)
            if message.id is not None:
                await self._deliver(content, message, delivery)

    async def _deliver(self, content: bytes, message: Message, delivery: _Delivery) -> bool:
        """Whether that was the last.

        :raises UnreadableAnswer: If it is no message for this request.
        """
        try:
            answer = read_answer(content, message)
        except (ValueError, RecursionError) as error:
            raise UnreadableAnswer(self._target.address.url, str(error)) from error
        if answer.agreed is not None:
            self._agreed = answer.agreed
        await delivery(answer)
        return answer.is_last

    def _headers(self, message: Message) -> dict[bytes, bytes]:
        address = self._target.address
        headers = {"Accept": f"{JSON}, {EVENT_STREAM}", "Content-Type": JSON, **message.headers(self._agreed)}
        if address.api_key is not None:
            headers["X-API-Key"] = address.api_key
        if address.namespace is not None:
            headers["X-Namespace"] = address.namespace
        return {name.encode(): value.encode() for name, value in headers.items()}


def _refused(response: httpx.Response) -> httpx.Response | None:
    """An error of JSON-RPC under the status of a no, as the other routes of the service say it; None if it is none."""
    try:
        said = json.loads(response.content)
        error = said["error"]
        data = error.get("data")
        sentence = error["message"]
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return None
    headers = {name: response.headers[name] for name in ("retry-after",) if name in response.headers}
    detail = {**(data if isinstance(data, dict) else {}), "detail": sentence}
    return httpx.Response(response.status_code, headers=headers, json=detail)


def _data(error: SouvenirError) -> Mapping[str, Any] | None:
    if not isinstance(error, ApiError):
        return None
    return {"status": error.status, "code": error.code, "request_id": error.request_id}
