"""What one service measures of itself beside its requests: stages, queues, caches, degraded searches, language models.

One `Instruments` belongs to one service: nothing here is global, so two in a process do not share a number. Rooms get
it when they are made and observe into it. Labels come from closed sets, never from what somebody sent or stored.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from enum import Enum
from threading import Lock

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from souvenir.observation.tracing import Tracing

STAGE_BUCKETS_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""From a lookup in a cache to a large import."""


class Stage(Enum):
    """A part of the way of a search or a write: (operation, stage)."""

    SEARCH_EMBED = ("search", "embed")
    SEARCH_WAIT = ("search", "wait")
    SEARCH_INDEX = ("search", "index")
    SEARCH_RANK = ("search", "rank")
    SEARCH_RERANK = ("search", "rerank")
    SEARCH_READ = ("search", "read")
    WRITE_PREPARE = ("write", "prepare")
    WRITE_WAIT = ("write", "wait")
    WRITE_COMMIT = ("write", "commit")
    WRITE_APPLY = ("write", "apply")


LLM_BUCKETS_S = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0)
"""From a small model of one's own to a large one that is asked again."""


class LLMOutcome(Enum):
    """How a question to a language model ended."""

    OK = "ok"
    REPAIRED = "repaired"
    UNAVAILABLE = "unavailable"
    REJECTED = "rejected"
    REFUSED = "refused"
    UNUSABLE = "unusable"
    INTERRUPTED = "interrupted"


class Instruments:
    """Safe to use from any thread. `registry` holds every figure, for whoever shows it."""

    def __init__(self, tracing: Tracing | None = None) -> None:
        self.tracing = tracing or Tracing()
        self.registry = CollectorRegistry()
        stages = Histogram(
            "souvenir_stage_duration_seconds",
            "Time that one stage of a search or of a write took.",
            ("operation", "stage"),
            buckets=STAGE_BUCKETS_S,
            registry=self.registry,
        )
        self._stages = {stage: stages.labels(*stage.value) for stage in Stage}
        self._degraded = Counter(
            "souvenir_degraded_searches",
            "Searches that were answered without this arm, or without the cross-encoder, because it could not run.",
            ("arm",),
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
        self._watching = Lock()
        self._depths: dict[str, list[Callable[[], int]]] = {}
        self._depth = Gauge("souvenir_queue_depth", "What waits in a queue now.", ("queue",), registry=self.registry)
        self._capacity = Gauge(
            "souvenir_queue_capacity",
            "What may wait in a queue before more is refused.",
            ("queue",),
            registry=self.registry,
        )

    def stage(self, stage: Stage) -> AbstractContextManager[object]:
        """Times what runs inside, also when that fails."""
        return self._stages[stage].time()

    def took(self, stage: Stage, duration_s: float) -> None:
        self._stages[stage].observe(duration_s)

    def watch_queue(self, name: str, depth: Callable[[], int], *, capacity: int) -> Callable[[], None]:
        """Show a queue's depth until the function that is returned is called; queues of one name are added up.

        :param depth: Called whenever the figures are read, from any thread.
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

    def asked_model(self, provider: str, outcome: LLMOutcome, took_s: float) -> None:
        self._llm_calls.labels(provider, outcome.value).inc()
        self._llm_seconds.labels(provider).observe(took_s)

    def spent_tokens(self, provider: str, input_tokens: int, output_tokens: int) -> None:
        self._llm_tokens.labels(provider, "input").inc(input_tokens)
        self._llm_tokens.labels(provider, "output").inc(output_tokens)
