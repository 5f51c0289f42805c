"""Property: applying and then undoing any ledger over any store restores the store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from souvenir.core.errors import UndoBlocked
from souvenir.core.ledger import Category, DecidedBy, Decision, FactRow, FactStage, LedgerFact, Verdict
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryPatch, OriginClass, Scope
from souvenir.jobs.worker import Jobs
from souvenir.learning.undo import undo
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin.jobs import EXTRACT, JobStatus
from tests.fake_embedder import FakeEmbedder
from tests.learning.dumps import dump
from tests.learning.ledgers import SOURCE, Applier, applied, ledger, seen
from tests.memories.engine.verbs import add, stored
from tests.thoroughness import sampled

WORDS = "garden bread violin harbour winter teacher engine mountain letter river".split()
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join)
LONG = st.integers(1, 400).map(lambda length: " ".join(WORDS[(length * n) % 10] for n in range(length)))
ORIGINS = st.sampled_from(list(OriginClass))
MAX_MEMORIES = 6

MEMORIES: st.SearchStrategy[list[dict[str, Any]]] = st.lists(
    st.builds(
        dict,
        text=TEXTS | LONG,
        source=st.sampled_from([SOURCE, SOURCE, f"{SOURCE}/b", "elsewhere"]),
        metadata=st.sampled_from([{}, {"lang": "en"}, {"protected": True}]),
        pinned=st.booleans(),
        origin_class=ORIGINS,
        tags=st.lists(st.sampled_from(["a", "A", "b c"]), max_size=2).map(tuple),
        facts=st.lists(TEXTS, max_size=2).map(tuple),
    ),
    max_size=MAX_MEMORIES,
)
LEDGERS = st.lists(
    st.tuples(
        TEXTS | LONG,
        st.sampled_from(list(Verdict)),
        st.integers(0, MAX_MEMORIES + 1),
        ORIGINS,
        st.none() | TEXTS,
        st.sampled_from([0, 0, 0, 1]),
        st.lists(st.integers(1, MAX_MEMORIES), max_size=3, unique=True),
    ),
    max_size=8,
)
VERBS = st.sampled_from(["patch", "supersede", "archive"])
CHANGES = st.lists(st.tuples(VERBS, st.integers(0, MAX_MEMORIES)), max_size=3)
Drawn = tuple[str, Verdict, int, OriginClass, str | None, int, list[int]]


def change(engine: MemoryEngine, scope: Scope, verb: str, memory_id: int) -> None:
    """Something that somebody does to a memory, if it is there and lives."""
    memory = engine.get(scope, [memory_id]).get(memory_id)
    if memory is None or memory.archived or memory.pinned:
        return
    match verb:
        case "patch":
            engine.update(scope, memory_id, MemoryPatch(metadata={"touched": True}))
        case "supersede":
            engine.supersede(scope, memory_id, text=f"{memory.text} again")
        case _:
            engine.archive(scope, [memory_id])


def row_of(engine: MemoryEngine, scope: Scope, ids: Sequence[int], drawn: Drawn) -> FactRow:
    text, verdict, number, origin, new_text, behind, related = drawn
    now = seen(engine, ids[number], scope)
    target = now._replace(version=now.version - behind) if number else None
    decision = Decision(verdict, DecidedBy.MODEL, "drawn", target, new_text)
    outcome = {"related": [[ids[one], 0.5] for one in related]}
    return FactRow(0, FactStage.DECIDED, LedgerFact(text, Category.DETAIL, origin), decision, outcome)


@pytest.fixture(scope="module")
def lane() -> Iterator[tuple[MemoryEngine, Jobs]]:
    """One for all examples: each has a namespace of its own, and is undone in it."""
    with TemporaryDirectory() as folder:
        settings = Settings(data_dir=Path(folder))
        with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
            applier = Applier(engine, settings, redecide=lambda rows: rows)
            with closing(Jobs(engine, [applier], queue_max=9, retention_days=1, lane=EXTRACT)) as jobs:
                jobs.start()
                yield engine, jobs


@hypothesis_settings(max_examples=sampled(20, 60))
@given(memories=MEMORIES, before=CHANGES, rows=LEDGERS, after=CHANGES)
def test_a_job_that_was_applied_and_undone_leaves_every_byte_as_it_was(lane, memories, before, rows, after):
    engine, jobs = lane
    scope = Scope(uuid4().hex)
    ids = [add(engine, scope=scope, key=f"key {n}" if n % 2 else None, **fields) for n, fields in enumerate(memories)]
    ids = [*ids, *[10**9] * (MAX_MEMORIES + 2 - len(ids))]
    for verb, number in before:
        change(engine, scope, verb, ids[number])
    was = dump(engine)
    job = applied(jobs, [row_of(engine, scope, ids, drawn) for drawn in rows], scope=scope)
    assert job.status is JobStatus.COMPLETED, job.error
    assert list(engine.check()) == []
    if job.result == {"approval": "required"}:
        assert dump(engine) == was
        return
    _facts_are_kept(engine, scope, job.id)
    now = dump(engine)
    for verb, number in after:
        change(engine, scope, verb, ids[number])
    changed = dump(engine)
    try:
        undo(engine, jobs, scope, job.id)
    except UndoBlocked:
        assert dump(engine) == changed != now
    else:
        assert changed != now or dump(engine) == was
    assert list(engine.check()) == []


def _facts_are_kept(engine: MemoryEngine, scope: Scope, job_id: str) -> None:
    """Every fact is stored, known, skipped with a reason, or about a memory that there is none of."""
    texts = {memory.id: memory.text for memory in stored(engine, scope)}
    for row in ledger(engine, job_id):
        if row.outcome["action"] in ("add", "conflict", "update"):
            assert row.memory_id is not None
            assert texts[row.memory_id] == row.outcome["text"]
        else:
            assert row.outcome["action"] in ("noop", "delete") or row.outcome["reason"]
