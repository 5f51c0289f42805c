"""Traces for OpenTelemetry: a span a request and a span a memory operation, sent to the operator's own collector.

Off unless an endpoint is set. The names are those of OpenTelemetry's semantic conventions for HTTP and for memory
operations of generative AI; `gen_ai.memory.store.id` is the namespace. No span holds a text, a query, a source, a key
or the message of an error, which could all be somebody's words; so FastAPI's own telemetry, which notes paths and query
strings, stays off.

The API of OpenTelemetry comes with FastAPI; what records and sends comes with the extra `otel`, and is imported only
when it is needed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sized
from contextlib import contextmanager
from enum import StrEnum
from functools import wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, Span, SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from souvenir.errors import SouvenirError, Unavailable
from souvenir.types import Scope

P = ParamSpec("P")
T = TypeVar("T")

TRACES_PATH = "/v1/traces"
EXPORT_TIMEOUT_S = 4
"""For one batch of spans, all attempts together; closing waits for the last one."""


class MemoryOperation(StrEnum):
    CREATE = "create_memory"
    UPDATE = "update_memory"
    UPSERT = "upsert_memory"
    SEARCH = "search_memory"
    DELETE = "delete_memory"


class Tracing:
    """Safe to use from any thread.

    :param tracer: None while traces are off: spans then cost nothing to speak of.
    """

    def __init__(self, tracer: Tracer | None = None, close: Callable[[], None] = lambda: None) -> None:
        self._tracer = tracer
        self.close = close

    @property
    def on(self) -> bool:
        return self._tracer is not None

    @classmethod
    def to(cls, endpoint: str | None, version: str) -> Tracing:
        """:param endpoint: Of a collector that speaks OTLP over HTTP, without the path; None: no traces.

        :raises Unavailable: If the packages of the extra are not installed.
        """
        if endpoint is None:
            return cls()
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError as error:
            raise Unavailable(
                "OTEL_EXPORTER_OTLP_ENDPOINT is set and the packages for traces are missing; "
                "install requirements-otel.txt, or unset it"
            ) from error
        name = os.environ.get("OTEL_SERVICE_NAME", "souvenir")
        resource = Resource.create({"service.name": name, "service.version": version})
        provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        exporter = OTLPSpanExporter(endpoint.rstrip("/") + TRACES_PATH, timeout=EXPORT_TIMEOUT_S)
        provider.add_span_processor(BatchSpanProcessor(exporter))
        return cls(provider.get_tracer("souvenir", version), provider.shutdown)

    @contextmanager
    def request(self, method: str, headers: Mapping[str, str]) -> Iterator[Span]:
        """A span of a request, which continues the trace that the caller's `traceparent` names."""
        if self._tracer is None:
            yield INVALID_SPAN
            return
        parent = TraceContextTextMapPropagator().extract(headers)
        with _span(self._tracer, method, SpanKind.SERVER, parent) as span:
            span.set_attribute("http.request.method", method)
            yield span

    @contextmanager
    def operation(self, operation: MemoryOperation, store: str) -> Iterator[Span]:
        """A span of a memory operation, inside of the request's."""
        if self._tracer is None:
            yield INVALID_SPAN
            return
        with _span(self._tracer, operation.value, SpanKind.INTERNAL) as span:
            span.set_attribute("gen_ai.operation.name", operation.value)
            span.set_attribute("gen_ai.memory.store.id", store)
            yield span


@contextmanager
def _span(tracer: Tracer, name: str, kind: SpanKind, parent: Context | None = None) -> Iterator[Span]:
    with tracer.start_as_current_span(
        name, parent, kind, record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield span
        except BaseException as error:
            fail(span, error.code if isinstance(error, SouvenirError) else type(error).__qualname__)
            raise


def fail(span: Span, error_type: str) -> None:
    span.set_attribute("error.type", error_type)
    span.set_status(Status(StatusCode.ERROR))


def trace_id_of(span: Span) -> str:
    """As other systems show it."""
    return f"{span.get_span_context().trace_id:032x}"


class Traced(Protocol):
    """What has operations to trace."""

    @property
    def tracing(self) -> Tracing: ...


Self = TypeVar("Self", bound=Traced)


def traced(
    operation: MemoryOperation, *, records: Callable[[Any], int] | None = None
) -> Callable[[Callable[Concatenate[Self, Scope, P], T]], Callable[Concatenate[Self, Scope, P], T]]:
    """Trace a verb whose first argument is a scope.

    :param records: How many memories the result is about. Without it, the verb's second argument says that: an id, one
        draft, or several of either.
    """

    def decorate(verb: Callable[Concatenate[Self, Scope, P], T]) -> Callable[Concatenate[Self, Scope, P], T]:
        @wraps(verb)
        def run(self: Self, scope: Scope, /, *args: P.args, **options: P.kwargs) -> T:
            with self.tracing.operation(operation, scope.namespace) as span:
                if records is None and args:
                    _describe(span, args[0])
                result = verb(self, scope, *args, **options)
                if records is not None:
                    span.set_attribute("gen_ai.memory.record.count", records(result))
                return result

        return run

    return decorate


def _describe(span: Span, subject: object) -> None:
    if isinstance(subject, int):
        span.set_attribute("gen_ai.memory.record.id", str(subject))
    span.set_attribute("gen_ai.memory.record.count", len(subject) if isinstance(subject, Sized) else 1)
