"""Usage: calls by day, namespace and operation, counted in memory and written in batches.

An answer without an error is a call of its operation. It is counted in total and, each for itself, by key, by source
(the first segment of its path) and by what the client says of itself: its name, session and invocation. Model calls of
extractions are counted with their tokens by model, and other services count facts about calls in dimensions of their
own. A kill loses the calls of the last `FLUSH_INTERVAL_S`. Safe to use from any thread.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import NamedTuple

from souvenir.core.background import Maintenance
from souvenir.core.errors import Overloaded, Unavailable
from souvenir.core.timestamps import EPOCH, utc_now
from souvenir.core.types import JsonObject, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin import usage as table
from souvenir.store.admin.usage import UsageRow
from souvenir.store.sql import Connection

FLUSH_INTERVAL_S = 5.0

MAX_PENDING = 2_000
"""Maximum number of different calls that wait to be written; further ones are counted without names."""

KEY, SOURCE, CLIENT, SESSION, INVOCATION, MODEL = "key", "source", "client", "session", "invocation", "model"

_SENT_CHARS: Mapping[str, int] = {CLIENT: 100, SESSION: 200, INVOCATION: 100}
"""Dimensions that clients name in headers, with the maximum number of bytes of a name."""

MODEL_CALLS = "extraction_model_calls"
"""The operation of model calls of extractions; those have tokens and no total."""

_Call = tuple[int, str, str, tuple[tuple[str, str], ...]]


class AnsweredCall(NamedTuple):
    """A request that was answered without an error. :param client, session, invocation: As sent, in its headers."""

    namespace: str
    operation: str
    actor: str
    source: object
    client: bytes | None
    session: bytes | None
    invocation: bytes | None

    def names(self) -> tuple[tuple[str, str], ...]:
        """Return the dimensions that the call is counted in, with their names."""
        found = [("", ""), (KEY, self.actor)]
        if isinstance(self.source, str) and (segment := table.first_segment(self.source)):
            found.append((SOURCE, segment))
        for (dimension, most), sent in zip(_SENT_CHARS.items(), self[-3:], strict=True):
            if sent is not None and (name := sent[:most].decode(errors="replace").strip()):
                found.append((dimension, name))
        return tuple(found)


@dataclass(slots=True)
class _Tally:
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0

    def add(self, calls: int, input_tokens: int, output_tokens: int, cost_usd: float | None) -> None:
        self.calls += calls
        self.input_tokens += input_tokens
        self.output_tokens += output_tokens
        self.cost_usd = None if self.cost_usd is None or cost_usd is None else self.cost_usd + cost_usd


class Usage:
    """:param enabled: If False, nothing is counted. :param clock: The current time."""

    def __init__(self, engine: MemoryEngine, *, enabled: bool = True, clock: Callable[[], datetime] = utc_now) -> None:
        self.enabled = enabled
        self._engine = engine
        self._clock = clock
        self.answered: deque[AnsweredCall] = deque(maxlen=None if enabled else 0)
        """Calls that were answered since the last write; the middleware appends them, and takes no lock for it."""
        self._writing = Lock()
        self._lock = Lock()
        self._pending: defaultdict[_Call, _Tally] = defaultdict(_Tally)
        self._trimmed = -1
        self._maintenance = Maintenance(self.flush, interval_s=FLUSH_INTERVAL_S)
        if enabled:
            self._maintenance.start()

    def close(self) -> None:
        """Write the pending calls; the engine must still be open. If it cannot, they are lost."""
        if not self.enabled:
            return
        self._maintenance.close()
        with suppress(Overloaded, Unavailable):
            self.flush()

    @property
    def today(self) -> int:
        """Days since 1970 in UTC."""
        return (self._clock() - EPOCH).days

    def count(self, namespace: str, operation: str, names: Mapping[str, str], *, calls: int = 1) -> None:
        """Count calls of an operation in these dimensions, each with its name, and not in total.

        A service notes facts about its calls so: `count(namespace, "search", {"evidence": "weak"})`.
        """
        self._count(namespace, operation, tuple(names.items()), calls)

    def count_model_calls(self, scope: Scope, calls: Sequence[JsonObject]) -> None:
        """Count model calls of an extraction. :param calls: With model, tokens and cost, if they are known."""
        for call in calls:
            names = ((MODEL, call.get("model") or "(unknown)"), (KEY, scope.actor))
            tokens = call.get("input_tokens", 0), call.get("output_tokens", 0)
            cost_usd = call.get("cost_usd") if any(tokens) else 0.0
            self._count(scope.namespace, MODEL_CALLS, names, 1, *tokens, cost_usd)

    def since(self, first_day: int, namespace: str | None = None) -> list[UsageRow]:
        """Return the rows from that day on, of one namespace or of all, with the calls until now."""
        with suppress(Overloaded, Unavailable):
            self.flush()
        with self._engine.namespace(Scope()) as (connection, _):
            return list(table.usage_since(connection, first_day, namespace))

    def flush(self) -> None:
        """Write the pending calls, and once a day delete the expired ones.

        :raises Overloaded, Unavailable: If the database cannot be written; the calls are kept.
        """
        with self._writing:
            today, pending = self.today, self._taken()
            if not pending:
                return

            def write(connection: Connection) -> None:
                table.add_usage(connection, _rows_of(pending))
                if self._trimmed != today:
                    table.trim_usage(connection, today)

            try:
                self._engine.write_rows(write)
            except BaseException:
                self._keep(pending)
                raise
            self._trimmed = today

    def forget(self, namespace: str, source: str | None = None) -> None:
        """Delete the counts of a source, or the sources and sessions of a namespace that were not written yet.

        The written ones are deleted with the namespace.
        """

        def is_kept(dimension: str, name: str) -> bool:
            if source is None:
                return dimension in table.WITHOUT_NAMESPACE
            return (dimension, name) != (SOURCE, table.first_segment(source))

        with self._writing:
            pending = self._taken()
            for (day, of, operation, names), tally in pending.items():
                kept = tuple(name for name in names if of != namespace or is_kept(*name))
                self._keep({(day, of, operation, kept): tally})
            if source is not None:
                self._engine.write_rows(lambda connection: table.forget_source(connection, namespace, source))

    def _taken(self) -> Mapping[_Call, _Tally]:
        """Return the pending calls, which are pending no more."""
        while self.answered:
            call = self.answered.popleft()
            self._count(call.namespace, call.operation, call.names(), 1)
        with self._lock:
            pending, self._pending = self._pending, defaultdict(_Tally)
        return pending

    def _keep(self, pending: Mapping[_Call, _Tally]) -> None:
        """Add calls to the pending ones."""
        with self._lock:
            for call, tally in pending.items():
                self._pending[call].add(tally.calls, tally.input_tokens, tally.output_tokens, tally.cost_usd)

    def _count(
        self,
        namespace: str,
        operation: str,
        names: tuple[tuple[str, str], ...],
        calls: int,
        input_tokens: int = 0,
        output_tokens: int = 0,
        cost_usd: float | None = 0.0,
    ) -> None:
        if not self.enabled:
            return
        day = self.today
        with self._lock:
            if len(self._pending) >= MAX_PENDING:
                names = tuple((dimension, table.OTHER if name else "") for dimension, name in names)
            self._pending[day, namespace, operation, names].add(calls, input_tokens, output_tokens, cost_usd)


def _rows_of(pending: Mapping[_Call, _Tally]) -> list[UsageRow]:
    """Return one row for each day, namespace, operation, dimension and name."""
    found: defaultdict[tuple[int, str, str, str, str], _Tally] = defaultdict(_Tally)
    for (day, namespace, operation, names), tally in pending.items():
        for dimension, name in names:
            found[day, namespace, dimension, operation, name].add(
                tally.calls, tally.input_tokens, tally.output_tokens, tally.cost_usd
            )
    return [
        UsageRow(*key, tally.calls, tally.input_tokens, tally.output_tokens, tally.cost_usd)
        for key, tally in found.items()
    ]
