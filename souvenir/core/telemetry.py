"""Telemetry: traces for OpenTelemetry, and metrics in addition to those of requests.

Traces have one span per request and one per memory operation, and are sent to the operator's own collector; they are
off unless an endpoint is set. The names are those of OpenTelemetry's semantic conventions for HTTP and for memory
operations of generative AI; `gen_ai.memory.store.id` is the namespace. No span contains a text, a query, a source, a
key or an error message, which could all be private; so FastAPI's own telemetry, which records paths and query strings,
stays off. The API of OpenTelemetry comes with FastAPI; the SDK that records and sends comes with the extra `otel`, and
is imported lazily.

Metrics cover stages, queues, caches, degraded searches and language models. Each service has its own `Instruments`:
there is no global state, so two services in a process do not share metrics. Labels come from closed sets, never from
text that was sent or stored.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sized
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum, StrEnum
from functools import wraps
from itertools import accumulate
from threading import Lock
from time import perf_counter
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from opentelemetry.context import Context
from opentelemetry.trace import INVALID_SPAN, Span, SpanKind, Status, StatusCode, Tracer
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import HistogramMetricFamily
from prometheus_client.registry import Collector

from souvenir.core.errors import SouvenirError, Unavailable
from souvenir.core.types import Scope

P = ParamSpec("P")
T = TypeVar("T")

TRACES_PATH = "/v1/traces"
EXPORT_TIMEOUT_S = 4
"""Timeout of one batch of spans, including retries; closing waits for the last one."""


class MemoryOperation(StrEnum):
    CREATE = "create_memory"
    UPDATE = "update_memory"
    UPSERT = "upsert_memory"
    SEARCH = "search_memory"
    DELETE = "delete_memory"


class Tracing:
    """Thread-safe.

    :param tracer: None while traces are off: the cost of spans is then negligible.
    """

    def __init__(self, tracer: Tracer | None = None, close: Callable[[], None] = lambda: None) -> None:
        self._tracer = tracer
        self.close = close
        self.on = tracer is not None

    @classmethod
    def to(cls, endpoint: str | None, version: str) -> Tracing:
        """:param endpoint: A collector's OTLP endpoint over HTTP, without the path; None: no traces.

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
        """A span of a request, which continues the trace in the caller's `traceparent`."""
        if self._tracer is None:
            yield INVALID_SPAN
            return
        parent = TraceContextTextMapPropagator().extract(headers)
        with _span(self._tracer, method, SpanKind.SERVER, parent) as span:
            span.set_attribute("http.request.method", method)
            yield span

    @contextmanager
    def operation(self, operation: MemoryOperation, store: str) -> Iterator[Span]:
        """A span of a memory operation within that of the request."""
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
    """Return the trace id in hexadecimal."""
    return f"{span.get_span_context().trace_id:032x}"


class Traced(Protocol):
    """A class with operations to trace."""

    @property
    def tracing(self) -> Tracing: ...


Self = TypeVar("Self", bound=Traced)


def traced(
    operation: MemoryOperation, *, records: Callable[[Any], int] | None = None
) -> Callable[[Callable[Concatenate[Self, Scope, P], T]], Callable[Concatenate[Self, Scope, P], T]]:
    """Trace a method whose first argument is a scope.

    :param records: Number of memories in the result. Without it, the method's second argument determines the number: an
        id, one draft, or several of either.
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


STAGE_BUCKETS_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""From a cache lookup to a large import."""


class Stage(Enum):
    """A stage of a request, a search or a write: (operation, stage)."""

    REQUEST_QUEUE = ("request", "queue")
    REQUEST_SERIALISE = ("request", "serialise")
    SEARCH_EMBED = ("search", "embed")
    SEARCH_QUEUE = ("search", "queue")
    SEARCH_WORDS = ("search", "words")
    SEARCH_VECTORS = ("search", "vectors")
    SEARCH_RANK = ("search", "rank")
    SEARCH_RERANK = ("search", "rerank")
    SEARCH_READ = ("search", "read")
    WRITE_PREPARE = ("write", "prepare")
    WRITE_QUEUE = ("write", "queue")
    WRITE_COMMIT = ("write", "commit")
    WRITE_APPLY = ("write", "apply")


bill: ContextVar[dict[str, float] | None] = ContextVar("souvenir_bill", default=None)
"""The seconds of each stage of a request so far, in all threads that inherit its context; None outside of requests. A
request sets an empty one."""

_counting = Lock()


def add_to_bill(stage: Stage, duration_s: float) -> None:
    """Add a stage that another thread ran for the request of this one."""
    if (stages := bill.get()) is not None:
        name = stage.value[1]
        with _counting:
            stages[name] = stages.get(name, 0.0) + duration_s


def server_timing(total_s: float) -> bytes:
    """Return the value of the header `Server-Timing` (W3C): the sum of each stage so far and `total`, in milliseconds.

    Stages of parts that ran concurrently can exceed the total.
    """
    with _counting:
        durations = {**(bill.get() or {}), "total": total_s}
    return ", ".join([f"{name};dur={1000 * seconds:.2f}" for name, seconds in durations.items()]).encode()


class _StageHistogram:
    """Durations of one stage: their number in each bucket, and their sum.

    `prometheus_client.Histogram` makes several times as many function calls for each, which add up over the stages of a
    search.
    """

    __slots__ = ("_name", "counts", "sum_s")

    def __init__(self, name: str) -> None:
        self._name = name
        self.counts = [0] * (len(STAGE_BUCKETS_S) + 1)
        self.sum_s = 0.0

    def observe(self, duration_s: float) -> None:
        bucket, stages = bisect_left(STAGE_BUCKETS_S, duration_s), bill.get()
        with _counting:
            self.counts[bucket] += 1
            self.sum_s += duration_s
            if stages is not None:
                stages[self._name] = stages.get(self._name, 0.0) + duration_s


class _Timed:
    """Measures a block for a stage, also if it fails."""

    __slots__ = ("_began_s", "_histogram")

    def __init__(self, histogram: _StageHistogram) -> None:
        self._histogram = histogram

    def __enter__(self) -> None:
        self._began_s = perf_counter()

    def __exit__(self, *_: object) -> None:
        self._histogram.observe(perf_counter() - self._began_s)


class _StageCollector(Collector):
    def __init__(self, stages: Mapping[Stage, _StageHistogram]) -> None:
        self._stages = stages

    def collect(self) -> Iterator[HistogramMetricFamily]:
        family = HistogramMetricFamily(
            "souvenir_stage_duration_seconds",
            "Time that one stage of a request, a search or a write took.",
            labels=("operation", "stage"),
        )
        bounds = [*map(str, STAGE_BUCKETS_S), "+Inf"]
        for stage, histogram in self._stages.items():
            with _counting:
                counts, sum_s = list(histogram.counts), histogram.sum_s
            family.add_metric(stage.value, list(zip(bounds, accumulate(counts), strict=True)), sum_s)
        yield family


LLM_BUCKETS_S = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0)
"""From a small local model to a large one with retries."""


class LLMOutcome(Enum):
    """The outcome of a call of a language model."""

    OK = "ok"
    REPAIRED = "repaired"
    UNAVAILABLE = "unavailable"
    REJECTED = "rejected"
    REFUSED = "refused"
    UNUSABLE = "unusable"
    INTERRUPTED = "interrupted"


class Instruments:
    """Thread-safe. `registry` holds every metric of the service."""

    def __init__(self, tracing: Tracing | None = None) -> None:
        self.tracing = tracing or Tracing()
        self.registry = CollectorRegistry()
        self._stages = {stage: _StageHistogram(stage.value[1]) for stage in Stage}
        self.registry.register(_StageCollector(self._stages))
        self._degraded = Counter(
            "souvenir_degraded_searches",
            "Searches that were answered without this arm, or without the cross-encoder, because it could not run.",
            ("arm",),
            registry=self.registry,
        )
        self._omissions = Counter(
            "souvenir_deadline_omissions",
            "Parts of searches that were omitted because the answer was due by the caller's deadline_ms.",
            ("part",),
            registry=self.registry,
        )
        lookups = Counter(
            "souvenir_query_cache_lookups",
            "Queries whose vector was in the cache (hit) or had to be computed (miss).",
            ("result",),
            registry=self.registry,
        )
        self._cache_hits, self._cache_misses = lookups.labels("hit"), lookups.labels("miss")
        self._llm_calls = Counter(
            "souvenir_llm_calls",
            "Questions to a language model, with everything that was done to get an answer.",
            ("provider", "outcome"),
            registry=self.registry,
        )
        self._llm_tokens = Counter(
            "souvenir_llm_tokens",
            "Tokens that a language model read (input) and wrote (output).",
            ("provider", "direction"),
            registry=self.registry,
        )
        self._llm_seconds = Histogram(
            "souvenir_llm_duration_seconds",
            "Time from a question to a language model to its usable answer, or to giving up.",
            ("provider",),
            buckets=LLM_BUCKETS_S,
            registry=self.registry,
        )
        webhooks = Counter(
            "souvenir_webhook_attempts",
            "Attempts to send an event to a webhook.",
            ("outcome",),
            registry=self.registry,
        )
        self._webhook_attempts = {outcome: webhooks.labels(outcome) for outcome in ("delivered", "failed")}
        self._watching = Lock()
        self._depths: dict[str, list[Callable[[], int]]] = {}
        self._depth = Gauge("souvenir_queue_depth", "What waits in a queue now.", ("queue",), registry=self.registry)
        self._capacity = Gauge(
            "souvenir_queue_capacity",
            "What may wait in a queue before more is refused.",
            ("queue",),
            registry=self.registry,
        )

    def count_webhook_attempt(self, outcome: str) -> None:
        """:param outcome: `delivered` or `failed`."""
        self._webhook_attempts[outcome].inc()

    def stage(self, stage: Stage) -> _Timed:
        """Measure the duration of the block, also if it fails."""
        return _Timed(self._stages[stage])

    def took(self, stage: Stage, duration_s: float) -> None:
        self._stages[stage].observe(duration_s)

    def watch_queue(self, name: str, depth: Callable[[], int], *, capacity: int) -> Callable[[], None]:
        """Publish a queue's depth until the returned function is called; queues with the same name are added up.

        :param depth: Called on every scrape of the metrics, from any thread.
        """
        with self._watching:
            depths = self._depths.setdefault(name, [])
            depths.append(depth)
        self._depth.labels(name).set_function(lambda: sum(watched() for watched in tuple(depths)))
        self._capacity.labels(name).set(capacity)

        def forget() -> None:
            with self._watching:
                if depth in depths:
                    depths.remove(depth)

        return forget

    def looked_up_query(self, *, hit: bool) -> None:
        (self._cache_hits if hit else self._cache_misses).inc()

    def degraded(self, arm: str) -> None:
        self._degraded.labels(arm).inc()

    def omitted(self, part: str) -> None:
        """Count a part of a search for which `deadline_ms` left no time."""
        self._omissions.labels(part).inc()

    def asked_model(self, provider: str, outcome: LLMOutcome, took_s: float) -> None:
        self._llm_calls.labels(provider, outcome.value).inc()
        self._llm_seconds.labels(provider).observe(took_s)

    def spent_tokens(self, provider: str, input_tokens: int, output_tokens: int) -> None:
        self._llm_tokens.labels(provider, "input").inc(input_tokens)
        self._llm_tokens.labels(provider, "output").inc(output_tokens)
