"""Requests and answers of the service, without I/O: the core of both clients.

Invariants: a call that reached the service is retried only if that is safe (`Repeat`); the Idempotency-Key of a call
stays the same over its retries.
"""

from __future__ import annotations

import json
import os
import re
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from enum import Enum
from random import SystemRandom
from typing import Any, Generic, TypeVar
from urllib.parse import quote, unquote
from uuid import uuid4

import httpx

from souvenir_client.decoding import Undecodable, decode
from souvenir_client.errors import ApiError, ConnectionFailed, TimedOut, UnreadableAnswer, error_class
from souvenir_client.saved import saved

DEFAULT_URL = "http://127.0.0.1:8900"
URL_VARIABLES = ("SOUVENIR_URL", "MEMORY_SERVER_URL")
KEY_VARIABLE = "SOUVENIR_API_KEY"
AGENT_VARIABLE = "SOUVENIR_AGENT"
URL_SAVED, KEY_SAVED, AGENT_SAVED = "souvenir_url", "souvenir_api_key", "souvenir_agent"
"""Names in the saved file."""

FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 8.0
_CHANCE = SystemRandom()
"""Independent of the program's random numbers, which may be seeded."""
LONGEST_TIMEOUT_S = 86_400.0
_NOT_FROM_PROXIES = frozenset({400, 404, 405, 409, 422, 501})
"""Status codes that a proxy does not generate: without a body of the service, another program answered."""
LONGEST_WISH_S = 30.0
"""The longest Retry-After that is respected."""

Result = TypeVar("Result")
Item = TypeVar("Item")


class NotSent(Enum):
    """The value of an argument that was not given: the service then uses its default."""

    NOT_SENT = "not sent"

    def __repr__(self) -> str:
        return "NOT_SENT"


NOT_SENT = NotSent.NOT_SENT


class Repeat(Enum):
    """How a call may be retried when its outcome is unknown."""

    SAFE = "safe"
    KEYED = "keyed"
    """Safe with an Idempotency-Key."""
    NEVER = "never"


class Listing(list[Item]):
    """The list of an answer, with the values of its headers."""

    def __init__(self, items: Iterable[Item], headers: Mapping[str, str]) -> None:
        super().__init__(items)
        self.headers = headers

    @property
    def total(self) -> int | None:
        """The number of items on all pages, if the service gives it."""
        found = self.headers.get("x-total-count", "")
        return int(found) if found.isdecimal() else None

    @property
    def relevance(self) -> float | None:
        """For a search: the share of similar queries that were answered in labelled data sets, in [0, 1]."""
        found = self.headers.get("x-search-relevance")
        return None if found is None else float(found)

    @property
    def evidence(self) -> str | None:
        """For a search: `strong` if the subject of the query is mentioned, `weak` if it may be, or `none`."""
        return self.headers.get("x-search-evidence")

    @property
    def answered(self) -> str | None:
        """For a search with `verify`: `yes`, `no` or `unknown`."""
        return self.headers.get("x-search-answered")

    @property
    def answer_quote(self) -> str | None:
        """For a search with `verify`: the words that answer."""
        return self._decoded("x-search-answer-quote")

    @property
    def answer_reason(self) -> str | None:
        """For a search with `verify`: why `answered` is `unknown`."""
        return self._decoded("x-search-answer-reason")

    @property
    def degraded(self) -> list[str]:
        """For a search: the parts that could not run."""
        found = self.headers.get("x-search-degraded", "")
        return [name.strip() for name in found.split(",") if name.strip()]

    def _decoded(self, header: str) -> str | None:
        found = self.headers.get(header)
        return None if found is None else unquote(found)


@dataclass(frozen=True, slots=True)
class Call(Generic[Result]):
    """One request.

    :param results: The type of the answer by its status.
    :param body: Sent as JSON, without arguments that were not given; None for no body.
    :param content: Sent unchanged, instead of a body.
    """

    method: str
    path: str
    results: Mapping[int, Any]
    query: Mapping[str, Any] = field(default_factory=dict)
    body: Any = None
    content: bytes | Iterable[bytes] | None = None
    headers: Mapping[str, Any] = field(default_factory=dict)
    repeat: Repeat = Repeat.NEVER

    def is_repeatable(self) -> bool:
        return self.repeat is not Repeat.NEVER and (self.content is None or isinstance(self.content, bytes))


@dataclass(frozen=True, slots=True)
class Address:
    """The address of the service, with the key and the namespace of the calls.

    :param namespace: None for the namespace of the key.
    """

    url: str
    api_key: str | None = field(repr=False)
    namespace: str | None
    timeout_s: float
    max_retries: int

    @classmethod
    def of(
        cls, server_url: str | None, api_key: str | None, namespace: str | None, timeout_s: float, max_retries: int
    ) -> Address:
        """Use the environment, the saved file or the default for missing values.

        :raises ValueError: If an argument is invalid. The message never contains the key.
        """
        named = server_url or named_url() or DEFAULT_URL
        if not 0 < timeout_s <= LONGEST_TIMEOUT_S or max_retries < 0:
            raise ValueError("timeout_s must be above 0 and at most a day, and max_retries not below 0")
        # A key read from a file often ends with a line break.
        key = (api_key or named_key() or "").strip()
        if not key.isprintable():
            raise ValueError(f"the API key contains characters that no key has: check {KEY_VARIABLE}")
        return cls(_service_url(named.strip()), key or None, namespace, timeout_s, max_retries)

    def __post_init__(self) -> None:
        if self.namespace is not None and not self.namespace.isprintable():
            raise ValueError(f"{self.namespace!r} is not a namespace: use printable characters only")

    def in_namespace(self, namespace: str | None) -> Address:
        return replace(self, namespace=namespace)


def named_url() -> str | None:
    """Return the address in the environment, or else in the saved file.

    :raises ValueError: If that file cannot be read.
    """
    return next((os.environ[name] for name in URL_VARIABLES if os.environ.get(name)), None) or saved(URL_SAVED)


def named_key() -> str | None:
    """Return the key in the environment, or else in the saved file.

    :raises ValueError: If that file cannot be read.
    """
    return os.environ.get(KEY_VARIABLE) or saved(KEY_SAVED)


def _service_url(named: str) -> str:
    try:
        url = httpx.URL(named)
    except httpx.InvalidURL as error:
        raise ValueError(f"{named!r} is not an HTTP address ({error}): use one such as {DEFAULT_URL}") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise ValueError(f"{named!r} is not an HTTP address: use one such as {DEFAULT_URL}")
    return named.rstrip("/")


def trusted(url: str) -> ssl.SSLContext | bool:
    """The TLS verification: httpx's default, or none for an address without TLS.

    Loading the default takes longer than a local request.
    """
    return url.startswith("https:") or ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that were given."""
    return {name: value for name, value in values.items() if value is not NOT_SENT}


def request_of(call: Call[Any], address: Address, content: Any = None) -> dict[str, Any]:
    """The arguments of httpx's `build_request`, except the timeout.

    :param content: Replaces the content of the call, for the asynchronous client.
    """
    headers = {"Accept": "application/json", **given(call.headers)}
    if address.api_key is not None:
        headers["X-API-Key"] = address.api_key
    if address.namespace is not None:
        headers["X-Namespace"] = address.namespace
    if call.repeat is Repeat.KEYED and "Idempotency-Key" not in headers:
        headers["Idempotency-Key"] = uuid4().hex
    query = {name: _in_query(value) for name, value in given(call.query).items() if value is not None}
    arguments: dict[str, Any] = {
        "method": call.method,
        "url": address.url + call.path,
        "params": query,
        # The service decodes header values as UTF-8, because names of namespaces may be in any script.
        "headers": {name: str(value).encode() for name, value in headers.items()},
    }
    if call.content is not None:
        arguments["content"] = call.content if content is None else content
        arguments["headers"]["Content-Type"] = b"application/x-ndjson"
    elif call.body is not None:
        body = given(call.body) if isinstance(call.body, Mapping) else call.body
        arguments["content"] = json.dumps(body, ensure_ascii=False, default=_in_body).encode()
        arguments["headers"]["Content-Type"] = b"application/json"
    return arguments


def result_of(call: Call[Result], response: httpx.Response, address: Address) -> Result:
    """Decode the answer to its record.

    :raises ApiError: If the service refused the request.
    :raises UnreadableAnswer: If it is no answer of the service.
    """
    raise_for(response, address)
    kind = call.results.get(response.status_code)
    if kind is None:
        raise UnreadableAnswer(address.url, f"its status is {response.status_code}")
    try:
        value = decode(kind, _parsed(response.content))
    except Undecodable as error:
        raise UnreadableAnswer(address.url, str(error)) from error
    return Listing(value, response.headers) if isinstance(value, list) else value  # type: ignore[return-value]


def raise_for(response: httpx.Response, address: Address) -> None:
    """:raises ApiError: If the service refused the request; the response must have been read."""
    if response.is_success:
        return
    if response.is_redirect:
        raise UnreadableAnswer(address.url, f"it redirects to {response.headers.get('location')}")
    try:
        body = _parsed(response.content)
    except Undecodable:
        body = None
    if not isinstance(body, dict) and response.status_code in _NOT_FROM_PROXIES:
        raise UnreadableAnswer(address.url, f"it answers {response.status_code} {response.reason_phrase}".rstrip())
    body = body if isinstance(body, dict) else {}
    raise error_class(response.status_code)(
        response.status_code,
        str(body.get("code") or ""),
        _sentence(body.get("detail"), response),
        request_id=body.get("request_id") or response.headers.get("x-request-id"),
        retry_after_s=_seconds(response.headers.get("retry-after")),
    )


def failure_of(error: httpx.HTTPError, address: Address, timeout_s: float) -> ConnectionFailed:
    """The exception of the client for a network error."""
    if isinstance(error, httpx.TimeoutException):
        return TimedOut(address.url, timeout_s)
    return ConnectionFailed(address.url, str(error) or type(error).__name__)


def pause_before_repeat(call: Call[Any], error: Exception, attempt: int) -> float | None:
    """Return the seconds to wait before a retry; None if there must be none.

    A request that never reached the service, or that it refused due to overload (429), had no effect.

    :param attempt: Number of earlier retries.
    """
    unsent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
    refused = isinstance(error, ApiError) and error.status == 429
    failed = isinstance(error, httpx.TransportError) or (
        isinstance(error, ApiError) and error.status in (502, 503, 504) and error.code != "extraction_not_configured"
    )
    again = (unsent or refused) and (call.content is None or isinstance(call.content, bytes))
    if not again and not (failed and call.is_repeatable()):
        return None
    wished = (error.retry_after_s if isinstance(error, ApiError) else None) or 0.0
    if wished > LONGEST_WISH_S:
        return None
    jitter = 0.5 + _CHANCE.random() / 2
    return max(wished, float(min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2**attempt)) * jitter)


def line_of(call: Call[Any], line: str, address: Address) -> dict[str, Any]:
    """Parse a line of an NDJSON answer.

    :raises UnreadableAnswer: If it is invalid.
    """
    try:
        value = _parsed(line)
    except Undecodable as error:
        raise UnreadableAnswer(address.url, str(error)) from error
    if not isinstance(value, dict):
        raise UnreadableAnswer(address.url, f"a line of {call.path} is not an object")
    return value


def _in_query(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.isoformat() if isinstance(value, date) else value


def _in_body(value: Any) -> Any:
    """The JSON form of times, dates, and mappings other than dict."""
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} cannot be sent; use text, numbers, lists, mappings or dates")


def _sentence(detail: Any, response: httpx.Response) -> str:
    """Return the service's message; invalid fields are joined to one sentence."""
    if isinstance(detail, str) and detail:
        return detail
    if isinstance(detail, list):
        wrong = [entry for entry in detail if isinstance(entry, dict)]
        return "; ".join(f"{'.'.join(map(str, entry.get('loc', ())))}: {entry.get('msg')}" for entry in wrong)
    if isinstance(detail, dict):
        return str(detail.get("message") or detail.get("detail") or detail.get("error") or detail)
    return f"The answer was {response.status_code} {response.reason_phrase}".rstrip()


def _parsed(content: bytes | str) -> Any:
    """Parse JSON.

    :raises Undecodable: If it is invalid, nested too deeply, or contains a number that is too long.
    """
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Undecodable(str(error)) from error


def _seconds(header: str | None) -> float | None:
    """The seconds of the header; None for a date, which this service does not send, and for invalid values."""
    return float(header) if header is not None and re.fullmatch(r"\d{1,9}(\.\d+)?", header) else None


def segment(value: object) -> str:
    """Encode a value as one segment of a path.

    :raises ValueError: If it would change the path: servers decode an encoded slash, and clients resolve dots.
    """
    text = str(value)
    if text in ("", ".", "..") or "/" in text:
        raise ValueError(f"{text!r} is not a valid name: it must not be empty, `.` or `..`, or contain /")
    return quote(text, safe="")


def segments(value: str) -> str:
    """Encode a path within a path.

    :raises ValueError: If one of its segments would change the path.
    """
    return "/".join(segment(one) for one in value.split("/"))
