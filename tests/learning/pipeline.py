"""Run extractions over a real engine with a scripted model, and read the results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from souvenir.core.ledger import FactRow
from souvenir.core.types import JsonObject, MemoryDraft, OriginClass, Scope
from souvenir.learning.extraction import Extraction, ExtractionRequest
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin.jobs import JobStatus
from souvenir.store.learning import extractions

ANN = Scope(actor="ann")
PATIENCE_S = 30.0

OpenExtraction = Callable[..., Extraction]


def extracted(extraction: Extraction, messages: str, *, scope: Scope = ANN, **more: Any) -> JsonObject:
    """The result of a job that is completed."""
    job = extraction.submit(scope, ExtractionRequest(messages, **{"source": "chat", **more}))
    done = extraction.jobs.wait(job.id, PATIENCE_S)
    assert done.status is JobStatus.COMPLETED, done.error
    result = extraction.result_of(done)
    assert result is not None
    return result


def ledger(engine: MemoryEngine, job_id: str) -> list[FactRow]:
    with engine.namespace(Scope()) as (connection, _):
        return extractions.facts(connection, job_id)


def row_of(engine: MemoryEngine, job_id: str) -> extractions.ExtractionRecord:
    with engine.namespace(Scope()) as (connection, _):
        found = extractions.find(connection, job_id)
    assert found is not None
    return found


def stored(engine: MemoryEngine, text: str, *, source: str = "chat", **more: Any) -> int:
    draft = MemoryDraft(text, source, origin_class=OriginClass.USER, **more)
    added = engine.add(ANN, draft).id
    assert added is not None
    return added


def texts(engine: MemoryEngine, scope: Scope = ANN) -> list[str]:
    """Of every living memory."""
    return [one.text for one in engine.page(scope, offset=0, limit=1000).memories if not one.archived]


def actions(result: JsonObject) -> list[str]:
    return [one["action"] for one in result["actions"]]
