"""RemoteLLM: a language model that a vendor runs, behind the one verb `generate`.

It asks again where that may help: after a failure that passes, for an answer that was cut, in a dialect that the
server takes, and once for an answer that does not fit, telling the model why. What is spent is counted, whatever comes
of it. No prompt, no answer and no key stands in an error or a log line: the SDKs' exceptions, which hold them, are not
chained.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Event, Lock
from time import monotonic
from typing import TYPE_CHECKING

import structlog

from souvenir.deadlines import time_left
from souvenir.errors import (
    DeadlineExceeded,
    LLMError,
    LLMOutputUnusable,
    LLMRefused,
    LLMRejected,
    LLMUnavailable,
    ServiceClosing,
)
from souvenir.llm.endpoint import Endpoint
from souvenir.llm.failures import error_of, resting, too_late
from souvenir.llm.parsing import Fault, Unreadable, value_of
from souvenir.llm.prices import cost_usd
from souvenir.llm.schema import instructions, schema_of
from souvenir.llm.types import NO_USAGE, Generated, Prompt, Shape, Usage
from souvenir.llm.wire import MAX_BODY_BYTES, Answer, Dialect, Ending, Failure, NoAnswer, Question, Turn, Wire
from souvenir.llm.wires import connect
from souvenir.observation.instruments import Instruments, LLMOutcome
from souvenir.vendors.outage import Outage
from souvenir.vendors.retrying import MAX_ATTEMPTS, asked_delay_s, backoff_s

FAILURES_IN_A_ROW = 3
REST_S = 30.0
"""A provider that failed so often is left alone so long."""

MAX_REPEATED_CHARS = 40_000
"""Of an answer that is sent back to the model that wrote it."""

_ADAPTABLE = frozenset({400, 404, 422, 500, 501})

if TYPE_CHECKING:
    from souvenir.llm.connections import Connections

log = structlog.get_logger(__name__)


@dataclass
class _Tally:
    """What one `generate` has spent, and until when it may.

    :param waited_s: That its caller waits; None: as long as a question may take.
    """

    deadline: float
    waited_s: float | None
    attempts: int = 0
    usage: Usage = NO_USAGE
    model: str | None = None

    @property
    def left_s(self) -> float:
        return self.deadline - monotonic()


@dataclass(frozen=True, slots=True)
class _Wrong:
    raw: str
    fault: Fault


class RemoteLLM:
    """Safe to call from many threads. The vendor's SDK is loaded at the first call.

    :param instruments: Where calls, tokens and times are seen.
    """

    def __init__(self, endpoint: Endpoint, instruments: Instruments | None = None) -> None:
        self._endpoint = endpoint
        self._instruments = instruments or Instruments()
        self._loading = Lock()
        self._loaded: tuple[Wire, Connections] | None = None
        self._dialect: Dialect | None = None
        self._outage = Outage("llm", LLMUnavailable, resting, rest_s=REST_S, after=FAILURES_IN_A_ROW)
        self._rejected: LLMRejected | None = None
        self._closing = Event()

    @property
    def name(self) -> str:
        return self._endpoint.provider.value

    @property
    def model(self) -> str:
        return self._endpoint.model

    def status(self) -> str:
        if (rejected := self._rejected) is not None:
            return f"error: {rejected.message}"
        return "healthy" if self._outage.failure is None else "unhealthy"

    def close(self) -> None:
        with self._loading:
            self._closing.set()
            loaded, self._loaded = self._loaded, None
        if loaded is not None:
            loaded[1].close()

    def generate(self, prompt: Prompt, shape: type[Shape]) -> Generated[Shape]:
        self._load()
        began = monotonic()
        tally = self._tally(began)
        outcome = LLMOutcome.INTERRUPTED
        try:
            with self._outage.watch():
                generated = self._generate(prompt, shape, tally)
            self._rejected = None
            outcome = LLMOutcome.REPAIRED if generated.repaired else LLMOutcome.OK
            return generated
        except LLMError as error:
            self._rejected = error if isinstance(error, LLMRejected) else None
            outcome = _outcome_of(error)
            error.attempts = tally.attempts
            error.input_tokens, error.output_tokens = tally.usage.input_tokens, tally.usage.output_tokens
            error.cost_usd = tally.usage.cost_usd
            raise
        finally:
            took_s = monotonic() - began
            self._instruments.asked_model(self.name, outcome, took_s)
            self._instruments.spent_tokens(self.name, tally.usage.input_tokens, tally.usage.output_tokens)
            log.info(
                "llm_asked",
                prompt=prompt.name,
                version=prompt.version,
                provider=self.name,
                model=tally.model or self.model,
                outcome=outcome.value,
                attempts=tally.attempts,
                input_tokens=tally.usage.input_tokens,
                output_tokens=tally.usage.output_tokens,
                took_s=round(took_s, 3),
            )

    def _tally(self, began: float) -> _Tally:
        """:raises DeadlineExceeded: If nobody waits for an answer any more."""
        may_take_s = self._endpoint.timeout_s
        left_s = time_left(may_take_s)
        return _Tally(began + left_s, left_s if left_s < may_take_s else None)

    # --- answers -----------------------------------------------------------------------------------------------

    def _generate(self, prompt: Prompt, shape: type[Shape], tally: _Tally) -> Generated[Shape]:
        schema = schema_of(shape, prompt.name)
        turn = Turn("user", _sendable(prompt.user))
        question = Question(_sendable(prompt.system), (turn,), schema, self._endpoint.max_tokens)
        first = self._value(question, shape, tally)
        last = self._value(_repair_of(question, first), shape, tally) if isinstance(first, _Wrong) else first
        if isinstance(last, _Wrong):
            raise LLMOutputUnusable(last.raw, last.fault.reason)
        return Generated(last, tally.usage, tally.model or self.model, tally.attempts, repaired=last is not first)

    def _value(self, question: Question, shape: type[Shape], tally: _Tally) -> Shape | _Wrong:
        raw = ""
        try:
            raw = self._whole(question, tally)
            return value_of(raw, shape)
        except Unreadable as unreadable:
            return _Wrong(raw, unreadable.fault)

    def _whole(self, question: Question, tally: _Tally) -> str:
        """What the model wrote, to its end."""
        answer = self._ask(question, tally)
        if answer.ending is Ending.CUT:
            with suppress(LLMRejected):
                # A model that does not write so much says so.
                answer = self._ask(replace(question, max_tokens=2 * question.max_tokens), tally)
        if answer.ending is Ending.REFUSED:
            raise LLMRefused("The language model declined to answer; nothing was changed, try another EXTRACT_MODEL")
        if answer.ending is Ending.CUT:
            raise LLMOutputUnusable(answer.text, "it was cut, also with twice EXTRACT_MAX_TOKENS")
        return answer.text

    # --- requests ----------------------------------------------------------------------------------------------

    def _ask(self, question: Question, tally: _Tally) -> Answer:
        """:raises Unreadable: If what comes is no answer of this API."""
        wire, connections = self._load()
        attempt = 1
        while True:
            came = self._ask_once(wire, connections, question, tally)
            if isinstance(came, Answer):
                return came
            error = error_of(came, self._endpoint)
            asked_s = asked_delay_s(came.headers)
            delay_s = backoff_s(attempt) if asked_s is None else asked_s
            if not isinstance(error, LLMUnavailable) or attempt == MAX_ATTEMPTS or delay_s >= tally.left_s:
                raise error
            if self._closing.wait(delay_s):
                raise ServiceClosing
            attempt += 1

    def _ask_once(self, wire: Wire, connections: Connections, question: Question, tally: _Tally) -> Answer | Failure:
        """In the fullest dialect that the server takes."""
        while True:
            dialect = self._dialect or wire.dialect
            came = self._send(wire, connections, question, dialect, tally)
            if isinstance(came, bytes):
                return self._read(wire, came, tally)
            less = dialect.without(came.words) if came.status in _ADAPTABLE else None
            if less is None:
                return came
            self._dialect = less
            log.info("llm_dialect", provider=self.name, mode=less.mode.value, temperature=less.temperature)

    def _send(
        self, wire: Wire, connections: Connections, question: Question, dialect: Dialect, tally: _Tally
    ) -> bytes | Failure:
        if tally.left_s <= 0:
            raise self._too_late(tally)
        tally.attempts += 1
        with connections.call(tally.left_s) as call:
            try:
                return wire.send(question, dialect, tally.left_s)
            except wire.errors as error:
                failure = wire.failure(error)
        # Out of the except block, so that what the server said is not chained.
        if self._closing.is_set():
            raise ServiceClosing
        if call.too_large:
            raise Unreadable(f"it is larger than {MAX_BODY_BYTES} bytes")
        if call.late or tally.left_s <= 0:
            raise self._too_late(tally)
        return failure

    def _too_late(self, tally: _Tally) -> LLMUnavailable | DeadlineExceeded:
        """Of a caller who waits for less than a question may take: that says nothing against the provider."""
        return too_late(self._endpoint) if tally.waited_s is None else DeadlineExceeded(tally.waited_s)

    def _read(self, wire: Wire, body: bytes, tally: _Tally) -> Answer:
        try:
            answer = wire.read(body)
        except NoAnswer:
            answer = None
        if answer is None:
            raise Unreadable("it is no answer of this API; see that EXTRACT_BASE_URL leads to one")
        tokens = answer.input_tokens, answer.output_tokens
        tally.model = answer.model or self.model
        tally.usage += Usage(*tokens, cost_usd(tally.model, *tokens) if self._endpoint.own else None)
        return answer

    def _load(self) -> tuple[Wire, Connections]:
        with self._loading:
            if self._closing.is_set():
                raise ServiceClosing
            if self._loaded is None:
                self._loaded = connect(self._endpoint)
            return self._loaded


def _repair_of(question: Question, wrong: _Wrong) -> Question:
    asked = (
        f"This answer cannot be used: {wrong.fault.details}\n\nGive the whole answer again, corrected. "
        + instructions(question.schema)
    )
    [first] = question.turns
    said = _sendable(wrong.raw[:MAX_REPEATED_CHARS])
    if not said.strip():
        # Some servers take no empty turn, and no two of one side.
        return replace(question, turns=(Turn("user", f"{first.text}\n\n{asked}"),))
    return replace(question, turns=(first, Turn("assistant", said), Turn("user", asked)))


def _sendable(text: str) -> str:
    """Halves of characters, which UTF-8 does not have, become question marks."""
    return text.encode("utf-8", "replace").decode()


def _outcome_of(error: LLMError) -> LLMOutcome:
    match error:
        case LLMUnavailable():
            return LLMOutcome.UNAVAILABLE
        case LLMRejected():
            return LLMOutcome.REJECTED
        case LLMRefused():
            return LLMOutcome.REFUSED
    return LLMOutcome.UNUSABLE
