"""Passing a request on to a vendor and its answer back, byte for byte, while its messages are stored.

What may fail a call is the vendor, the caller's key or the name of its agent; the memory never does. The answer to a
request is held back until both sides are stored, but no longer than `STORING_TIMEOUT_S`, so that the next request finds
them; the events of a stream are passed on as they come, and only its end waits.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import httpx2
import structlog
from fastapi import Request, Response
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from souvenir.compat.proxy.calls import AnsweredSessions, HeardAnswer, ModelCall, written
from souvenir.compat.proxy.kept_contexts import KeptContexts, Shown
from souvenir.compat.proxy.places import SESSION_HEADER, agent_of, conversation_of, place_of
from souvenir.compat.proxy.storing import Said, Storing
from souvenir.compat.proxy.vendors import VendorEndpoint, for_caller, vendor_of
from souvenir.compat.proxy.wires import wire_of
from souvenir.compat.proxy.wires.answers import EVENT_STREAM
from souvenir.compat.proxy.wires.prefixes import KnownPrefixes
from souvenir.core.errors import ModelUnreachable, SouvenirError
from souvenir.core.timestamps import utc_now
from souvenir.core.types import Scope
from souvenir.models.providers.endpoints import is_loopback
from souvenir.server.load_shedding import CLIENT_LEFT, CostClass
from souvenir.server.request_guards import SEARCHING, charged_caller, most_found, require_access
from souvenir.server.route import JsonRequest
from souvenir.server.service import Service

CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 600.0
"""Maximum wait for the next byte of an answer, as long as the vendors' own clients wait."""
STORING_TIMEOUT_S = 1.0
MAX_KEPT_BYTES = 16 * 2**20
"""Limit of a captured answer; the rest is passed on without being captured."""

CONTEXT_HEADER = "X-Souvenir-Context"
"""Of the answer: `added`; `none` if there is nothing to add; `unavailable` if the memory did not answer in time."""

log = structlog.get_logger(__name__)


class Proxy:
    """What the calls of one service share: connections to the vendors, and what is known of conversations."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.storing = Storing(service)
        self.prefixes = KnownPrefixes()
        self.contexts = KeptContexts()
        self.sessions = AnsweredSessions()
        self._clients: dict[str, httpx2.AsyncClient] = {}

    def client(self, base_url: str) -> httpx2.AsyncClient:
        if base_url not in self._clients:
            # Redirects are passed on, and this machine is not reached through a proxy.
            self._clients[base_url] = httpx2.AsyncClient(
                follow_redirects=False,
                trust_env=not is_loopback(base_url),
                timeout=httpx2.Timeout(ANSWER_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=50),
            )
        return self._clients[base_url]

    def answer(self, request: Request, scope: Scope, path: str) -> ProxiedAnswer:
        """Return the answer to a request.

        :param scope: Of the caller's key, or of the namespace that its header names.
        :param path: That of the vendor's API, which begins with `/v1`.
        """
        if not isinstance(request, JsonRequest):
            raise TypeError("A route passes its own request")
        return ProxiedAnswer(self, request, scope, path)

    async def close(self) -> None:
        """Store what is left of finished calls, then close the connections."""
        await self.storing.close()
        for client in self._clients.values():
            await client.aclose()


@dataclass(frozen=True, slots=True)
class _Prepared:
    """:param content: The body to send without context. :param call: None if it is no call of a model."""

    content: bytes
    call: ModelCall | None = None


class ProxiedAnswer(Response):
    """Asks the vendor when it is sent, because until then its status is not known."""

    def __init__(self, proxy: Proxy, request: JsonRequest, scope: Scope, path: str) -> None:
        super().__init__()
        self._proxy = proxy
        self._request = request
        self._scope = scope
        self._path = path
        self._caller = charged_caller(request)

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        request, service = self._request, self._proxy.service
        request.caller = self._caller
        if not await request.hold_body(service, service.admission.places[CostClass.LIGHT]):
            return await Response(status_code=CLIENT_LEFT)(scope, receive, send)
        try:
            working = asyncio.ensure_future(self._pass_on(await request.body(), send))
            left = asyncio.ensure_future(_disconnected(receive))
            try:
                await asyncio.wait((working, left), return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (working, left):
                    task.cancel()
                ended, _ = await asyncio.gather(working, left, return_exceptions=True)
            if isinstance(ended, Exception):
                raise ended
        finally:
            service.bodies.release(self._caller, request.held_bytes or 0)

    async def _pass_on(self, body: bytes, send: Send) -> None:
        """:raises SouvenirError: If the caller's request is refused here, or the vendor is not reached."""
        proxy, request, state = self._proxy, self._request, self._request.scope["state"]
        vendor = VendorEndpoint.of(proxy.service.settings, vendor_of(self._path, state["headers"]))
        headers = vendor.headers(request.headers.raw, callers_key=state["vendor_credentials"])
        prepared = await proxy.service.threads.run(self._prepare, body)
        content, call = prepared.content, prepared.call
        added, stored = "", None
        if call is not None:
            shown = await call.shown(proxy.service, self._caller, proxy.contexts)
            content, added = await proxy.service.threads.run(_placed, call, shown, content)
            if call.new_turns:
                stored = proxy.storing.put(Said(call.place, lambda: call.new_turns, self._caller, utc_now()))
        query = request.url.query
        address = f"{vendor.base_url}{self._path.removeprefix('/v1')}{f'?{query}' if query else ''}"
        client = proxy.client(vendor.base_url)
        asked = client.build_request(request.method, address, headers=headers, content=content or None)
        try:
            answer = await client.send(asked, stream=True)
        except httpx2.HTTPError as error:
            raise ModelUnreachable(vendor.vendor, type(error).__name__) from None
        try:
            own = [] if call is None else _about(call, added)
            await send(
                {
                    "type": "http.response.start",
                    "status": answer.status_code,
                    "headers": [*for_caller(answer.headers.raw), *own],
                }
            )
            await _Passing(proxy, call if answer.is_success else None, answer, self._caller, stored).run(send)
        finally:
            await answer.aclose()

    def _prepare(self, body: bytes) -> _Prepared:
        """Read the request: its agent and what is new in it. What cannot be read is passed on as it is.

        :raises SouvenirError: If the caller may not use the agent, or a header is invalid.
        """
        try:
            sent = json.loads(body) if body else None
        except (ValueError, RecursionError):
            sent = None
        if not isinstance(sent, dict):
            return _Prepared(body)
        model = sent.get("model")
        scope, name = agent_of(self._request, self._scope, model if isinstance(model, str) else "")
        self._request.state.namespace = scope.namespace
        try:
            if name and name != model:
                sent = {**sent, "model": name}
                body = written(sent)
            return _Prepared(body, self._call_of(sent, scope))
        except SouvenirError:
            raise
        except Exception as error:  # the boundary to the call, which goes on without memory
            log.error("proxied_call_not_read", agent=scope.namespace, exc_info=error)
            return _Prepared(body)

    def _call_of(self, sent: Mapping[str, Any], scope: Scope) -> ModelCall | None:
        wire = wire_of(self._path, sent)
        if wire is None:
            return None
        turns = wire.turns(sent)
        continued = conversation_of(sent) or self._proxy.sessions.of(sent.get("previous_response_id"))
        place = place_of(self._request, scope, turns, continued)
        return ModelCall(wire, sent, place, turns, self._proxy.prefixes, partial(_most_found, self._request))


class _Passing:
    """Passes an answer on, and has it stored.

    :param call: None if there is nothing to store. :param stored: The task that stores the question.
    """

    def __init__(
        self,
        proxy: Proxy,
        call: ModelCall | None,
        answer: httpx2.Response,
        caller: str,
        stored: asyncio.Task[None] | None,
    ) -> None:
        self._proxy = proxy
        self._call = call
        self._answer = answer
        self._caller = caller
        self._stored = stored
        self._content_type = answer.headers.get("content-type", "")
        self._chunks: list[bytes] = []
        self._room = MAX_KEPT_BYTES

    async def run(self, send: Send) -> None:
        if self._call is not None:
            self._call.begin_answer()
        is_stream = self._content_type.startswith(EVENT_STREAM)
        held = b""
        try:
            async for chunk in self._answer.aiter_raw():
                # Before it is passed on: a caller that has the last event may never read on.
                self._hear(chunk)
                out, held = (chunk, b"") if is_stream else (held, chunk)
                if out:
                    await send({"type": "http.response.body", "body": out, "more_body": True})
        except httpx2.HTTPError as error:
            # The status is sent already, so the caller's connection breaks off like the vendor's.
            log.warning("proxied_answer_broke_off", reason=type(error).__name__)
            return
        finally:
            self._store_answer()
        await self._settled()
        await send({"type": "http.response.body", "body": held, "more_body": False})

    def _hear(self, chunk: bytes) -> None:
        if self._call is not None and self._room > 0:
            self._chunks.append(chunk[: self._room])
            self._room -= len(chunk)

    def _store_answer(self) -> None:
        if self._call is None:
            return
        heard = HeardAnswer(self._chunks, self._answer.headers.get("content-encoding", ""), self._content_type)
        said = Said(self._call.place, partial(self._call.answer, heard, self._proxy.sessions), self._caller, utc_now())
        self._stored = self._proxy.storing.put(said, self._stored) or self._stored

    async def _settled(self) -> None:
        """Wait until both sides are stored; they are stored in the background if it takes longer."""
        if self._stored is not None:
            await asyncio.wait((self._stored,), timeout=STORING_TIMEOUT_S)


def _placed(call: ModelCall, shown: Shown | None, content: bytes) -> tuple[bytes, str]:
    """Return the body with its context, and what the header says of it."""
    if shown is None:
        return content, "unavailable"
    if not (shown.stable or shown.tail):
        return content, "none"
    try:
        return call.placed(shown), "added"
    except ValueError as error:
        log.warning("proxied_call_without_context", agent=call.place.scope.namespace, reason=str(error))
        return content, "unavailable"


def _most_found(request: Request) -> int | None:
    """:raises AccessLimited: If the agent does not let the caller's key search."""
    require_access(request, SEARCHING)
    return most_found(request)


def _about(call: ModelCall, added: str) -> list[tuple[bytes, bytes]]:
    named = {CONTEXT_HEADER: added, SESSION_HEADER: call.place.session_id}
    return [(name.lower().encode(), value.encode("utf-8")) for name, value in named.items()]


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
