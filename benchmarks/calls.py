"""Python calls and SQL statements of a search, an add and a context: the fixed cost of each, on any processor.

1,000 memories and as many messages, with the real embedding model; the queries are repeated, so that their vectors come
from the query cache. A call of a Python function, or of a generator, counts as one, on whatever thread it runs; a
statement as one, BEGIN and COMMIT too. Background work is done before.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from types import FrameType
from typing import Any

import apsw

from benchmarks.add_overhead import wait_until_idle
from benchmarks.conversation.filling import SCOPE as AGENT
from benchmarks.conversation.filling import fill
from benchmarks.load.sentences import memories, questions
from benchmarks.report import Target, table
from souvenir.conversations.context import ContextQuery, Contexts
from souvenir.conversations.messages import Conversations
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, Scope, SearchQuery
from souvenir.memories.engine import MemoryEngine
from souvenir.models.embedding.factory import embedder_of

STORED = 1_000
QUERIES = 10
OPERATIONS = 20
BATCH = 500
SOURCE = "bench/calls"

MOST_CALLS = 400
MOST_STATEMENTS = 4


@dataclass(slots=True)
class Counted:
    """Counts while `active`; the hooks reach the threads and connections that are made after `installed`."""

    calls: int = 0
    statements: int = 0
    active: bool = False

    @contextmanager
    def installed(self) -> Iterator[None]:
        apsw.connection_hooks.append(self._watch)
        threading.setprofile(self._profile)
        sys.setprofile(self._profile)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            apsw.connection_hooks.remove(self._watch)

    def of(self, operation: Callable[[], object]) -> tuple[float, float]:
        """Return the calls and the statements of an operation, the mean of `OPERATIONS`."""
        operation()
        wait_until_idle()
        self.calls = self.statements = 0
        self.active = True
        for _ in range(OPERATIONS):
            operation()
        self.active = False
        return self.calls / OPERATIONS, self.statements / OPERATIONS

    def _watch(self, connection: apsw.Connection) -> None:
        connection.exec_trace = self._executed

    def _executed(self, *_: object) -> bool:
        self.statements += self.active
        return True

    def _profile(self, _frame: FrameType, event: str, _argument: Any) -> None:
        self.calls += self.active and event == "call"


def count_calls(folder: Path) -> list[Target]:
    """Print the table."""
    counted = Counted()
    settings = Settings(data_dir=folder / "calls")
    with counted.installed(), closing(embedder_of(settings)) as embedder:
        embedder.load()
        with closing(MemoryEngine.open(settings, embedder)) as engine:
            found = {name: counted.of(operation) for name, operation in operations(engine, settings).items()}
    rows = [(name, f"{calls:.0f}", f"{statements:.1f}") for name, (calls, statements) in found.items()]
    print("\nPython calls and SQL statements of one operation\n\n" + table(("", "calls", "statements"), rows))
    calls, statements = found["search"]
    return [
        Target("Python calls of a search", calls, MOST_CALLS),
        Target("SQL statements of a search", statements, MOST_STATEMENTS),
    ]


def operations(
    engine: MemoryEngine, settings: Settings, stored: int = STORED, messages: int = STORED
) -> dict[str, Callable[[], object]]:
    """Fill an empty engine with memories and messages; return a search, an add and a context, by name."""
    fill(engine, messages)
    texts = memories(seed=0)
    for _ in range(0, stored, BATCH):
        engine.add_batch(Scope(), [MemoryDraft(text, SOURCE) for text in islice(texts, BATCH)])
    engine.warm_up()
    engine.snapshot()
    queries = cycle(list(islice(questions(seed=0), QUERIES)))
    contexts = Contexts.of(engine, Conversations(engine), settings)
    return {
        "search": lambda: engine.search(Scope(), SearchQuery(next(queries))),
        "add": lambda: engine.add(Scope(), MemoryDraft(next(texts), SOURCE)),
        "context": lambda: contexts.build(AGENT, ContextQuery(next(queries))),
    }
