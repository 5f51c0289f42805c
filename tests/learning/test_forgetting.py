"""Forgotten content is removed from ledgers and transcripts, and no extraction restores it."""

from __future__ import annotations

from typing import Any

import pytest

from souvenir.core.errors import UndoBlocked
from souvenir.core.ledger import FactStage, Phase, Verdict
from souvenir.jobs.worker import Jobs
from souvenir.learning.undo import undo
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin.jobs import JobStatus
from souvenir.store.learning import extractions
from tests.learning.conftest import OpenLane, Remember
from tests.learning.ledgers import (
    ANN,
    PATIENCE_S,
    Applier,
    applied,
    decided,
    extraction,
    ledger,
    living,
    row_of,
    seen,
    submit,
)
from tests.memories.engine.verbs import stored


def kept(engine: MemoryEngine, job_id: str) -> str:
    """All that is stored of an extraction, as text."""
    with engine.namespace(ANN) as (connection, _):
        rows: Any = connection.execute("SELECT transcript FROM extractions WHERE job_id = ?", (job_id,)).fetchall()
        rows += connection.execute("SELECT * FROM extraction_facts WHERE job_id = ?", (job_id,)).fetchall()
    return repr(rows)


@pytest.mark.parametrize("which", ["new", "old"])
def test_deleting_a_memory_blanks_its_facts_and_their_transcript(
    engine: MemoryEngine, jobs: Jobs, remember: Remember, which: str
):
    old = remember("The code of the door is 4711")
    rows = [decided("The code is 4712", Verdict.UPDATE, seen(engine, old)), decided("Tea is green", Verdict.ADD)]
    job = applied(jobs, rows, transcript="user: the code is 4712 now, and tea is green")
    other = applied(jobs, [decided("The sea is blue", Verdict.ADD)], transcript="user: the sea is blue")
    engine.delete(ANN, old if which == "old" else row_of(engine, job.id).memory_id or 0)
    assert "4712" not in kept(engine, job.id)
    assert extraction(engine, job.id).transcript is None
    assert row_of(engine, job.id).fact is None
    assert row_of(engine, job.id, 2).fact is not None
    assert "the sea is blue" in kept(engine, other.id)


def test_a_partly_forgotten_job_is_not_partly_undone(engine: MemoryEngine, jobs: Jobs, remember: Remember):
    ids = [remember("The code of the door is 4711"), remember("Ann has a red car")]
    job = applied(jobs, [decided(f"Ann sold {one}", Verdict.DELETE, seen(engine, one)) for one in ids])
    engine.write_rows(lambda connection: extractions.forget_transcripts(connection, ANN.namespace))
    with pytest.raises(UndoBlocked, match=f"memory {ids[0]} .forgotten in the ledger., memory {ids[1]} "):
        undo(engine, jobs, ANN, job.id)
    assert living(engine) == []


def test_a_transcript_in_use_is_deleted_after_it_was_read(
    engine: MemoryEngine, open_lane: OpenLane, applier: Applier, remember: Remember
):
    jobs = open_lane(applier, start=False)
    old = remember("The code of the door is 4711")
    rows = [decided("The code is 4712", Verdict.NOOP, seen(engine, old))]
    job = submit(jobs, rows, phase=Phase.DECIDING)
    engine.delete(ANN, old)
    assert extraction(engine, job.id).transcript is not None
    assert row_of(engine, job.id).fact is None
    engine.write_rows(lambda connection: extractions.set_phase(connection, job.id, Phase.DECIDED))
    assert extraction(engine, job.id).transcript is None
    jobs.start()
    assert jobs.wait(job.id, PATIENCE_S).status is JobStatus.COMPLETED
    assert row_of(engine, job.id).stage is FactStage.SKIPPED


def test_a_transcript_whose_messages_change_is_read_by_its_own_job_only(
    engine: MemoryEngine, open_lane: OpenLane, applier: Applier
):
    jobs = open_lane(applier, start=False)
    job = submit(jobs, [decided("The code is 4712", Verdict.ADD)], phase=Phase.DECIDING, transcript="user: it is 4712")
    engine.write_rows(lambda connection: extractions.blank_transcripts(connection, [job.id]))
    assert (extraction(engine, job.id).transcript, extraction(engine, job.id).kept_transcript) == (
        "user: it is 4712",
        None,
    )
    engine.write_rows(lambda connection: extractions.set_phase(connection, job.id, Phase.DECIDED))
    assert extraction(engine, job.id).transcript is None
    jobs.start()
    assert jobs.wait(job.id, PATIENCE_S).status is JobStatus.COMPLETED
    assert living(engine) == ["The code is 4712"]
    undo(engine, jobs, ANN, job.id)
    assert living(engine) == []


def test_waiting_jobs_of_a_deleted_namespace_end_and_write_nothing(
    engine: MemoryEngine, open_lane: OpenLane, applier: Applier
):
    jobs = open_lane(applier, start=False)
    job = submit(jobs, [decided("The code is 4712", Verdict.ADD)], transcript="user: the code is 4712")
    engine.write_rows(lambda connection: extractions.forget_transcripts(connection, ANN.namespace))
    assert "4712" not in kept(engine, job.id)
    jobs.start()
    assert jobs.wait(job.id, PATIENCE_S).status is JobStatus.CANCELLED
    assert stored(engine, ANN) == []
    assert [row.fact for row in ledger(engine, job.id)] == [None]
