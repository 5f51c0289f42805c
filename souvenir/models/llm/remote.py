"""RemoteLLM: a language model behind a vendor's API, with the single operation `generate`.

It retries after a transient failure, for a truncated answer, in a dialect that the server accepts, and once for an
answer that does not fit, with the reason. Usage is counted in all cases. No error or log line contains a prompt, an
answer or a key.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from threading import Event, Lock
from time import monotonic
from typing import TYPE_CHECKING

import structlog

from souvenir.core.concurrency import time_left
from souvenir.core.errors import (
    DeadlineExceeded,
    LLMError,
    LLMOutputUnusable,
    LLMRefused,
    LLMRejected,
    LLMUnavailable,
    ServiceClosing,
)
from souvenir.core.settings import ExtractProvider
from souvenir.core.telemetry import Instruments, LLMOutcome
from souvenir.models.llm.anthropic_wire import AnthropicWire
from souvenir.models.llm.failures import error_of, open_error, too_late
from souvenir.models.llm.ollama_wire import OllamaWire
from souvenir.models.llm.openai_wire import OpenAIWire
from souvenir.models.llm.parsing import Fault, Unreadable, value_of
from souvenir.models.llm.prompts import NO_USAGE, Generated, Prompt, Shape, TokenUsage, cost_usd
from souvenir.models.llm.schema import instructions, schema_of
from souvenir.models.llm.wire import MAX_BODY_BYTES, Answer, ChatTurn, Dialect, Ending, NoAnswer, Question, Wire
from souvenir.models.providers.circuit_breaker import CircuitBreaker
from souvenir.models.providers.endpoints import LLMEndpoint
from souvenir.models.providers.retry import AnswerTooLarge, AnswerTooLate, ProviderFailure, retrying

FAILURES_IN_A_ROW = 3
REST_S = 30.0
"""The circuit breaker opens after this many consecutive failures, for this long."""

MAX_REPEATED_CHARS = 40_000
"""Limit of an answer that is sent back to the model for repair."""

_ADAPTABLE = frozenset({400, 404, 422, 500, 501})

if TYPE_CHECKING:
    from souvenir.models.providers.client import ProviderClient

log = structlog.get_logger(__name__)


@dataclass
class _Tally:
    """Usage and deadline of one `generate`.

    :param waited_s: The caller's remaining time if it is shorter than that of a question, else None.
    """

    deadline: float
    waited_s: float | None
    attempts: int = 0
    usage: TokenUsage = NO_USAGE
    model: str | None = None

    @property
    def left_s(self) -> float:
        return self.deadline - monotonic()


@dataclass(frozen=True, slots=True)
class _Wrong:
    raw: str
    fault: Fault


class RemoteLLM:
    """Thread-safe. The HTTP client is loaded at the first call.

    :param instruments: Receives metrics of calls, tokens and durations.
    """

    def __init__(self, endpoint: LLMEndpoint, instruments: Instruments | None = None) -> None:
        self._endpoint = endpoint
        self._instruments = instruments or Instruments()
        self._wire = _wire_of(endpoint)
        self._connecting = Lock()
        self._client: ProviderClient | None = None
        self._dialect: Dialect | None = None
        self._breaker = CircuitBreaker("llm", LLMUnavailable, open_error, rest_s=REST_S, after=FAILURES_IN_A_ROW)
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
        return "healthy" if self._breaker.failure is None else "unhealthy"

    def close(self) -> None:
        with self._connecting:
            self._closing.set()
        if self._client is not None:
            self._client.close()

    def generate(self, prompt: Prompt, shape: type[Shape]) -> Generated[Shape]:
        if self._closing.is_set():
            raise ServiceClosing
        began = monotonic()
        tally = self._tally(began)
        outcome = LLMOutcome.INTERRUPTED
        try:
            with self._breaker.watch():
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
        """:raises DeadlineExceeded: If the caller's deadline has passed."""
        may_take_s = self._endpoint.timeout_s
        left_s = time_left(may_take_s)
        return _Tally(began + left_s, left_s if left_s < may_take_s else None)

    # --- answers -----------------------------------------------------------------------------------------------

    def _generate(self, prompt: Prompt, shape: type[Shape], tally: _Tally) -> Generated[Shape]:
        schema = schema_of(shape, prompt.name)
        turn = ChatTurn("user", _sendable(prompt.user))
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
        """Return the complete answer of the model."""
        answer = self._ask(question, tally)
        if answer.ending is Ending.CUT:
            with suppress(LLMRejected):
                # A model with a lower limit rejects the request.
                answer = self._ask(replace(question, max_tokens=2 * question.max_tokens), tally)
        if answer.ending is Ending.REFUSED:
            raise LLMRefused("The language model declined to answer; nothing was changed, try another EXTRACT_MODEL")
        if answer.ending is Ending.CUT:
            raise LLMOutputUnusable(answer.text, "it was cut, also with twice EXTRACT_MAX_TOKENS")
        return answer.text

    # --- requests ----------------------------------------------------------------------------------------------

    def _ask(self, question: Question, tally: _Tally) -> Answer:
        """:raises Unreadable: If the body is no answer of this API."""

        def failed(failure: ProviderFailure) -> tuple[LLMError, bool]:
            error = error_of(failure, self._endpoint)
            return error, isinstance(error, LLMUnavailable)

        return retrying(
            lambda: self._ask_once(question, tally), failed, left_s=lambda: tally.left_s, closing=self._closing
        )

    def _ask_once(self, question: Question, tally: _Tally) -> Answer | ProviderFailure:
        """Send the question in the fullest dialect that the server accepts."""
        while True:
            dialect = self._dialect or self._wire.dialect
            body = self._send(question, dialect, tally)
            if isinstance(body, bytes):
                return self._read(body, tally)
            less = dialect.without(body.words) if body.status in _ADAPTABLE else None
            if less is None:
                return body
            self._dialect = less
            log.info("llm_dialect", provider=self.name, mode=less.mode.value, temperature=less.temperature)

    def _send(self, question: Question, dialect: Dialect, tally: _Tally) -> bytes | ProviderFailure:
        if tally.left_s <= 0:
            raise self._too_late(tally)
        tally.attempts += 1
        request = self._wire.request(question, dialect)
        error: LLMError | DeadlineExceeded | Unreadable
        try:
            return self._connected().post(self._wire.path, request, timeout_s=tally.left_s, max_bytes=MAX_BODY_BYTES)
        except ProviderFailure as failure:
            return failure
        except AnswerTooLarge:
            error = Unreadable(f"it is larger than {MAX_BODY_BYTES} bytes")
        except AnswerTooLate:
            error = self._too_late(tally)
        # Outside of the except block, so that the error has no chained exception.
        raise error

    def _too_late(self, tally: _Tally) -> LLMUnavailable | DeadlineExceeded:
        """Return the error; if only the caller's shorter deadline has passed, the provider has not failed."""
        return too_late(self._endpoint) if tally.waited_s is None else DeadlineExceeded(tally.waited_s)

    def _read(self, body: bytes, tally: _Tally) -> Answer:
        try:
            answer = self._wire.read(body)
        except NoAnswer:
            answer = None
        if answer is None:
            raise Unreadable("it is not an answer of this API; check that EXTRACT_BASE_URL is the address of one")
        tokens = answer.input_tokens, answer.output_tokens
        tally.model = answer.model or self.model
        tally.usage += TokenUsage(*tokens, cost_usd(tally.model, *tokens) if self._endpoint.own else None)
        return answer

    def _connected(self) -> ProviderClient:
        """Return the client, created at first use, so that a service without a model does not import it."""
        from souvenir.models.providers.client import ProviderClient

        with self._connecting:
            if self._closing.is_set():
                raise ServiceClosing
            if self._client is None:
                self._client = ProviderClient(self._endpoint.base_url, self._wire.headers)
            return self._client


def _wire_of(endpoint: LLMEndpoint) -> Wire:
    match endpoint.provider:
        case ExtractProvider.ANTHROPIC:
            return AnthropicWire(endpoint)
        case ExtractProvider.OPENAI:
            return OpenAIWire(endpoint)
    return OllamaWire(endpoint)


def _repair_of(question: Question, wrong: _Wrong) -> Question:
    asked = (
        f"This answer cannot be used: {wrong.fault.details}\n\nGive the whole answer again, corrected. "
        + instructions(question.schema)
    )
    [first] = question.turns
    said = _sendable(wrong.raw[:MAX_REPEATED_CHARS])
    if not said.strip():
        # Some servers reject an empty turn, and two consecutive turns of one role.
        return replace(question, turns=(ChatTurn("user", f"{first.text}\n\n{asked}"),))
    return replace(question, turns=(first, ChatTurn("assistant", said), ChatTurn("user", asked)))


def _sendable(text: str) -> str:
    """Replace unpaired surrogates, which UTF-8 cannot encode, by question marks."""
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
