"""A model call inside a block: its messages are captured, and it is sent with context.

Invariants: the caller's arguments are never changed, and the SDK's result or exception reaches the caller unchanged. A
failure here is logged and leaves the call as it would be without a block. A call waits only for its context, for at
most `timeout_s`.
"""

from __future__ import annotations

import copy
import functools
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from souvenir_client.interception import blocks
from souvenir_client.interception.blocks import Block
from souvenir_client.interception.capture import Said
from souvenir_client.interception.connections import connection_of
from souvenir_client.interception.contexts import Shown
from souvenir_client.interception.messages import MAX_CONTENT_CHARS, cut, shortened, storable
from souvenir_client.interception.prefixes import News, RequestState
from souvenir_client.interception.response_tap import Tapped, tap, turns_of
from souvenir_client.interception.storage import Place
from souvenir_client.interception.wires import Turn, Wire, settled, wire_of
from souvenir_client.records import ContextResponse

_sent: ContextVar[object] = ContextVar("souvenir_sent", default=None)
"""The body of the call in progress, which arrives here again if two of our methods are stacked."""

_log = logging.getLogger("souvenir_client")


def around(original: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the method `request` of an SDK."""

    @functools.wraps(original)
    def request(client: object, cast_to: object, options: Any, **more: Any) -> Any:
        options, call = _begin(options)
        if call is None:
            return original(client, cast_to, options, **more)
        with _sending(call.with_context()) as sent:
            answer = original(client, cast_to, sent, **more)
        call.answered(answer)
        return answer

    return request


def around_async(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    async def request(client: object, cast_to: object, options: Any, **more: Any) -> Any:
        options, call = _begin(options)
        if call is None:
            return await original(client, cast_to, options, **more)
        with _sending(await call.with_context_async()) as sent:
            answer = await original(client, cast_to, sent, **more)
        call.answered(answer)
        return answer

    return request


@contextmanager
def _sending(options: Any) -> Iterator[Any]:
    token = _sent.set(options.json_data)
    try:
        yield options
    finally:
        _sent.reset(token)


def _begin(options: Any) -> tuple[Any, ModelCall | None]:
    """The body to send, and the call if it is a supported one."""
    standing = blocks.here()
    wire = None if standing is None or not isinstance(options.url, str) else wire_of(options.url, options.json_data)
    if standing is None or wire is None or options.json_data is _sent.get():
        return options, None
    body = settled({**options.json_data, **(getattr(options, "extra_json", None) or {})})
    # The caller's iterators are consumed from here on, so the settled body is sent in any case.
    options = _with_body(options, body)
    try:
        return options, ModelCall(*standing, wire, body, options)
    except Exception:  # noqa: BLE001 - the boundary to the caller: the model is called without us
        _log.warning("A question to agent %s could not be captured", standing[0].agent, exc_info=True)
    return options, None


class ModelCall:
    """A model call, from queueing its new messages before it is sent until its answer is captured.

    :param body: The body that the wire parses.
    :param options: The SDK's request with that body; a copy of it is sent.
    """

    def __init__(self, block: Block, place: Place, wire: Wire, body: Mapping[str, Any], options: Any) -> None:
        self._block = block
        self._place = place
        self._wire = wire
        self._body = body
        self._options = options
        self._connection = connection_of(block.settings.address)
        turns = wire.turns(body)
        said = (turn.content for turn in reversed(turns) if turn.role == "user" and turn.content.strip())
        self._query = storable(cut(next(said, ""), MAX_CONTENT_CHARS))
        self._news = self._connection.prefixes.take((place.agent, place.session_id, place.user or ""), turns)
        self._put(self._news.turns)

    def with_context(self) -> Any:
        """Return the body to send."""
        try:
            shown = self._shown_before()
            if shown is None and self._asks():
                shown = self._connection.contexts.ask(self._news, self._build, self._block.settings.timeout_s)
            return self._placed(shown)
        except Exception:  # noqa: BLE001 - the boundary to the caller: the model is called without us
            _log.warning("A question to agent %s got no context", self._place.agent, exc_info=True)
        return self._options

    async def with_context_async(self) -> Any:
        """`with_context` without blocking the event loop."""
        try:
            shown = self._shown_before()
            if shown is None and self._asks():
                contexts, timeout_s = self._connection.contexts, self._block.settings.timeout_s
                shown = await contexts.ask_async(self._news, self._build, timeout_s)
            return self._placed(shown)
        except Exception:  # noqa: BLE001 - the boundary to the caller: the model is called without us
            _log.warning("A question to agent %s got no context", self._place.agent, exc_info=True)
        return self._options

    def answered(self, answer: object) -> None:
        """Capture an answer: a plain one immediately, any other when its body ends or is interrupted."""
        try:
            self._news.note(RequestState.ANSWERING)
            self._connection.capture.expect(1)
            if not tap(answer, self._ended):
                self._connection.capture.expect(-1)
                self._put(self._wire.answer(answer))
                self._news.note(RequestState.ANSWERED)
        except Exception:  # noqa: BLE001 - the boundary to the caller: the answer is theirs, whatever we make of it
            _log.warning("An answer to agent %s could not be captured", self._place.agent, exc_info=True)

    def _ended(self, tapped: Tapped) -> None:
        """May be called by a finaliser, so it takes no lock."""
        answer = _HeardAnswer(self._wire, tapped, self._news)
        self._news.note_unread(answer.progress)
        self._connection.capture.pass_on(self._said(answer.read, 1, answer.let_go))

    def _put(self, turns: Sequence[Turn]) -> None:
        if turns:
            kept = tuple(shortened(turn) for turn in turns)
            self._connection.capture.put(self._said(lambda: kept, len(kept)))

    def _said(self, read: Callable[[], Sequence[Turn]], turns: int, let_go: Callable[[], None] = lambda: None) -> Said:
        return Said(self._place, read, turns, self._block, self._block.transcripts, let_go)

    def _shown_before(self) -> Shown | None:
        """Return the context of the question, in a tool loop."""
        return None if self._block.settings.capture_only else self._connection.contexts.kept(self._news)

    def _asks(self) -> bool:
        return not self._block.settings.capture_only and self._news.question is not None and self._query != ""

    def _build(self) -> ContextResponse:
        settings = self._block.settings
        return self._connection.context(self._place, self._query, settings.max_tokens, settings.timeout_s)

    def _placed(self, shown: Shown | None) -> Any:
        if shown is None or not (shown.stable or shown.tail):
            return self._options
        return _with_body(self._options, self._wire.placed(self._body, shown.stable, shown.tail))


class _HeardAnswer:
    """An answer that the caller has read, parsed lazily: by the queue's thread, or before it."""

    def __init__(self, wire: Wire, tapped: Tapped, news: News) -> None:
        self._wire = wire
        self._news = news
        self._held: Tapped | Sequence[Turn] = tapped

    def read(self) -> Sequence[Turn]:
        turns = self._turns()
        self._news.note_read()
        return turns

    def let_go(self) -> None:
        """Drop the messages, which are not stored."""
        self._held = ()
        self._news.note_read()

    def progress(self) -> RequestState:
        turns = self._turns()
        broken = not turns or any(turn.metadata.get("incomplete") for turn in turns)
        return RequestState.ANSWERING if broken else RequestState.ANSWERED

    def _turns(self) -> Sequence[Turn]:
        """Parse the answer; two concurrent calls both parse it."""
        held = self._held
        if isinstance(held, Tapped):
            held = self._held = tuple(shortened(turn) for turn in turns_of(self._wire, held))
        return held


def _with_body(options: Any, body: Mapping[str, Any]) -> Any:
    """A copy of a request with another body. The SDKs merge `extra_json` over it when they send it."""
    copied = copy.copy(options)
    copied.json_data = body
    if getattr(copied, "extra_json", None):
        copied.extra_json = {name: body.get(name, value) for name, value in copied.extra_json.items()}
    return copied
