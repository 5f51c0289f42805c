"""Passing a request on to a vendor and its answer back, byte for byte, while its messages are stored.

What may fail a call is the vendor, the caller's key or the name of its agent; the memory never does. The answer to a
request is held back until both sides are stored, but no longer than `STORING_TIMEOUT_S`, so that the next request finds
them; the events of a stream are passed on as they come, and only its end waits.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any

import httpx2
import structlog
from fastapi import Request, Response
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from souvenir.compat.proxy.answers import HeardAnswer
from souvenir.compat.proxy.calls import AnsweredSessions, ModelCall
from souvenir.compat.proxy.json_bodies import JsonBody
from souvenir.compat.proxy.kept_contexts import KeptContexts
from souvenir.compat.proxy.places import SESSION_HEADER, agent_of, conversation_of, place_of
from souvenir.compat.proxy.storing import Course, Said, Storing
from souvenir.compat.proxy.vendors import PROXIED_HEADER, VendorEndpoint, for_caller, vendor_of, without_keys
from souvenir.compat.proxy.wires import Turn, wire_of
from souvenir.compat.proxy.wires.answers import EVENT_STREAM
from souvenir.compat.proxy.wires.prefixes import KnownPrefixes
from souvenir.conversations.continued import NOTHING_YET, Continued
from souvenir.core.errors import InvalidRequest, ModelUnreachable, Overloaded, SouvenirError
from souvenir.core.timestamps import utc_now
from souvenir.core.types import Role, Scope
from souvenir.models.providers.endpoints import is_loopback
from souvenir.server.load_shedding import CLIENT_LEFT, CostClass
from souvenir.server.request_guards import (
    SEARCHING,
    admit_again,
    charged_caller,
    establish_scope,
    most_found,
    require_access,
)
from souvenir.server.route import JsonRequest
from souvenir.server.service import Service

CONNECT_TIMEOUT_S = 10.0
ANSWER_TIMEOUT_S = 600.0
"""Maximum wait for the next byte of an answer, as long as the vendors' own clients wait."""
STORING_TIMEOUT_S = 1.0
MAX_INLINE_BYTES = 64 * 1024
"""A context is put into a smaller request on the event loop, in less time than another thread takes to begin."""
MAX_STATUS = 599
CALLER_SHARE = 0.75
"""Share of the calls in progress that one caller may have."""
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
        self._calls: Counter[str] = Counter()
        self._clients: dict[str, httpx2.AsyncClient] = {}

    def client(self, base_url: str) -> httpx2.AsyncClient:
        if base_url not in self._clients:
            # Redirects are passed on, cookies of one caller are not kept for others, and this machine is not reached
            # through a proxy.
            self._clients[base_url] = httpx2.AsyncClient(
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
                follow_redirects=False,
                trust_env=not is_loopback(base_url),
                timeout=httpx2.Timeout(ANSWER_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=50),
            )
        return self._clients[base_url]

    @contextmanager
    def counted(self, caller: str) -> Iterator[None]:
        """Count a call in progress.

        :raises Overloaded: If there are too many, of the caller or in all: vendors take long, and connections are few.
        """
        most = self.service.settings.max_proxied_calls
        if self._calls.total() >= most or self._calls[caller] >= max(1, int(most * CALLER_SHARE)):
            raise Overloaded("Too many calls of models are in progress; try again in a moment", retry_after_s=1)
        self._calls[caller] += 1
        try:
            yield
        finally:
            self._calls[caller] -= 1
            if not self._calls[caller]:
                del self._calls[caller]

    def answer(self, request: Request, path: str) -> ProxiedAnswer:
        """Return the answer to a request.

        :param path: That of the vendor's API, which begins with `/v1`.
        """
        if not isinstance(request, JsonRequest):
            raise TypeError("A route passes its own request")
        return ProxiedAnswer(self, request, path)

    async def close(self) -> None:
        """Store what is left of finished calls, then close the connections."""
        await self.storing.close()
        for client in self._clients.values():
            await client.aclose()


@dataclass(frozen=True, slots=True)
class _Prepared:
    """:param content: The body to send, unless there is a call. :param call: None if it is no call of a model.

    :param course: What the messages of the call continue.
    """

    content: bytes
    call: ModelCall | None = None
    course: Course = field(default_factory=lambda: Course(NOTHING_YET))


class ProxiedAnswer(Response):
    """Asks the vendor when it is sent, because until then its status is not known."""

    def __init__(self, proxy: Proxy, request: JsonRequest, path: str) -> None:
        super().__init__()
        self._proxy = proxy
        self._request = request
        self._path = path
        self._caller = charged_caller(request)
        self._held_bytes = 0

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        with self._proxy.counted(self._caller):
            await self._answer(scope, receive, send)

    async def _answer(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        request, service = self._request, self._proxy.service
        request.caller = self._caller
        if not await request.hold_body(service, service.admission.places[CostClass.LIGHT]):
            return await Response(status_code=CLIENT_LEFT)(scope, receive, send)
        self._held_bytes = request.held_bytes or 0
        try:
            self._admit_again()
            working = asyncio.ensure_future(self._pass_on(send))
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
            self._release_body()

    def _admit_again(self) -> None:
        """:raises SouvenirError: If the key was changed or revoked while the body arrived."""
        request, state = self._request, self._request.scope["state"]
        if self._proxy.service.authenticator.keys.generation != state["keys"]:
            needed = Role.READ_ONLY if request.method == "GET" else Role.READ_WRITE
            establish_scope(request, admit_again(request), needed)

    def _release_body(self) -> None:
        self._proxy.service.bodies.release(self._caller, self._held_bytes)
        self._held_bytes = 0

    async def _pass_on(self, send: Send) -> None:
        """:raises SouvenirError: If the caller's request is refused here, or the vendor is not reached."""
        proxy, request, state = self._proxy, self._request, self._request.scope["state"]
        vendor = VendorEndpoint.of(proxy.service.settings, vendor_of(self._path, state["headers"]))
        if PROXIED_HEADER in state["headers"]:
            raise InvalidRequest(
                f"{vendor.vendor.upper()}_BASE_URL of the service leads to a proxy; set it to the vendor's address"
            )
        sent = without_keys(request.headers.raw, proxy.service.authenticator.is_key)
        headers = vendor.headers(sent, callers_key=state["vendor_credentials"])
        prepared = await self._prepared(await request.body())
        # The memory of the body is given back when it was sent.
        del request._body
        content, call, course = prepared.content, prepared.call, prepared.course
        added, stored = "", None
        if call is not None:
            try:
                shown = await call.shown(proxy.service, self._caller, proxy.contexts)
            finally:
                course.searched.set()
                # While the vendor works, so that only the answer is left to be stored when it is there.
                stored = self._put_question(call, course)
            if call.size > MAX_INLINE_BYTES:
                content, added = await proxy.service.threads.run(call.request, shown)
            else:
                content, added = call.request(shown)
        query = request.scope["query_string"]
        address = f"{vendor.base_url}{self._path.removeprefix('/v1')}"
        url = httpx2.URL(address, query=query) if query else httpx2.URL(address)
        if request.method != "GET":
            headers.append((b"content-length", b"%d" % len(content)))
        body = self._sent(content) if request.method != "GET" else None
        del content, prepared
        client = proxy.client(vendor.base_url)
        asked = client.build_request(request.method, url, headers=headers, content=body)
        try:
            answer = await client.send(asked, stream=True)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise ModelUnreachable(vendor.vendor, type(error).__name__) from None
        try:
            if answer.status_code > MAX_STATUS:
                raise ModelUnreachable(vendor.vendor, f"its status is {answer.status_code}")
            own = [] if call is None else _about(call, added)
            await send(
                {
                    "type": "http.response.start",
                    "status": answer.status_code,
                    "headers": [*for_caller(answer.headers.raw, answer.status_code), *own],
                }
            )
            heard = call if answer.is_success else None
            await _Passing(proxy, heard, answer, self._caller, course, stored).run(send)
        finally:
            await answer.aclose()

    async def _prepared(self, body: bytes) -> _Prepared:
        """Return what `_prepare` does.

        From then on its messages are known, so they are stored even if the caller leaves: a retry does not do it again.
        """
        work = self._proxy.service.threads.run(self._prepare, body)
        try:
            prepared: _Prepared = await asyncio.shield(work)
        except asyncio.CancelledError:
            work.add_done_callback(self._put_abandoned)
            raise
        return prepared

    def _put_abandoned(self, work: asyncio.Future[_Prepared]) -> None:
        if work.exception() is None and (call := work.result().call) is not None:
            work.result().course.searched.set()
            self._put_question(call, work.result().course)

    def _put_question(self, call: ModelCall, course: Course) -> asyncio.Task[None] | None:
        if not call.new_turns:
            return None
        read = partial(_itself, call.new_turns)
        return self._proxy.storing.put(Said(call.place, read, self._caller, course, utc_now()))

    async def _sent(self, content: bytes) -> AsyncIterator[bytes]:
        """Yield the body, and give its memory back once it is sent."""
        yield content
        self._release_body()

    def _prepare(self, body: bytes) -> _Prepared:
        """Read the request: its agent and what is new in it. What cannot be read is passed on as it is.

        :raises SouvenirError: If the caller may not use the agent, or a header is invalid.
        """
        try:
            read = JsonBody(body) if body else None
        except (ValueError, RecursionError):
            read = None
        model = "" if read is None else read.values.get("model")
        own: Scope = self._request.scope["state"]["scope"]
        if self._request.method == "GET":
            return _Prepared(body)
        scope, name = agent_of(self._request, own, model if isinstance(model, str) else "")
        self._request.state.namespace = scope.namespace
        if read is None:
            return _Prepared(body)
        try:
            sent = {**read.values, "model": name} if name and name != model else read.values
            call = self._call_of(read, sent, scope)
            return _Prepared(read.replaced(sent)) if call is None else _Prepared(b"", call, self._course_of(call))
        except SouvenirError:
            raise
        except Exception as error:  # the boundary to the call, which goes on without memory
            log.error("proxied_call_not_read", agent=scope.namespace, exc_info=error)
            return _Prepared(body)

    def _call_of(self, read: JsonBody, sent: Mapping[str, Any], scope: Scope) -> ModelCall | None:
        wire = wire_of(self._path, sent)
        if wire is None:
            return None
        turns = wire.turns(sent)
        continued = conversation_of(sent) or self._proxy.sessions.of(scope, sent.get("previous_response_id"))
        place = place_of(self._request, scope, turns, continued)
        return ModelCall(wire, read, sent, place, turns, self._proxy.prefixes, partial(_most_found, self._request))

    def _course_of(self, call: ModelCall) -> Course:
        try:
            return Course(Continued.now(self._proxy.service.engine, call.place.scope, call.place.session_id))
        except SouvenirError:
            # The store does not answer now, and the call goes on.
            return Course(NOTHING_YET)


class _Passing:
    """Passes an answer on, and has it stored.

    :param call: None if there is nothing to store. :param course: What the answer continues.
    :param stored: The task that stores the question.
    """

    def __init__(
        self,
        proxy: Proxy,
        call: ModelCall | None,
        answer: httpx2.Response,
        caller: str,
        course: Course,
        stored: asyncio.Task[None] | None,
    ) -> None:
        self._proxy = proxy
        self._call = call
        self._answer = answer
        self._caller = caller
        self._course = course
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
        read = partial(self._call.answer, heard, self._proxy.sessions)
        said = Said(self._call.place, read, self._caller, self._course, utc_now())
        self._stored = self._proxy.storing.put(said) or self._stored

    async def _settled(self) -> None:
        """Wait until both sides are stored; they are stored in the background if it takes longer."""
        if self._stored is not None:
            await asyncio.wait((self._stored,), timeout=STORING_TIMEOUT_S)


def _itself(turns: Sequence[Turn]) -> Sequence[Turn]:
    return turns


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
