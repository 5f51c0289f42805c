"""A model with scripted claims, its jobs, and a dump of the stored claims."""

from __future__ import annotations

from collections import Counter
from typing import Any

from souvenir.core.types import JsonObject, Scope
from souvenir.knowledge.model_claims import ModelClaims
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin.jobs import DESCRIBE, Job, JobStatus
from souvenir.store.graph import claims
from tests.knowledge.agent import ANN
from tests.learning.scripted_model import ScriptedModel

PATIENCE_S = 30.0

MOVED = "Alice moved to Lisbon last year"
WORKS = "Alice works for Heron as an engineer"


def claim(kind: str, concept: str, text: str, quote: str, other: str | None = None, sure: float = 0.9) -> JsonObject:
    return {"kind": kind, "concept": concept, "text": text, "other": other, "quote": quote, "confidence": sure}


def lives(quote: str = MOVED) -> JsonObject:
    return claim("relation", "Alice", "lives in", quote, "Lisbon")


def always(*made: Any) -> ScriptedModel:
    """A model that always claims these."""
    return ScriptedModel({"describe": lambda prompt: {"claims": list(made)}})


def run(model_claims: ModelClaims, scope: Scope = ANN, *, session: str | None = "s", limit: int = 10) -> Job:
    model_claims.start()
    job = model_claims.jobs.submit(DESCRIBE, scope, {"session": session, "limit": limit})
    return model_claims.jobs.wait(job.id, PATIENCE_S)


def result(model_claims: ModelClaims, scope: Scope = ANN, **more: Any) -> JsonObject:
    job = run(model_claims, scope, **more)
    assert job.status is JobStatus.COMPLETED, job
    assert job.result is not None
    return job.result


def stored(engine: MemoryEngine, scope: Scope = ANN) -> list[tuple[str, str, str, str | None]]:
    """What is claimed: kind, concept, text, and the other concept."""
    with engine.namespace(scope) as (connection, namespace):
        if namespace is None:
            return []
        found = claims.of_namespace(connection, namespace.id)
    return [(one.kind.value, one.key, one.text, one.other_key) for one in found]


def named(engine: MemoryEngine) -> list[str]:
    """The names and summaries that a model gave to topics."""
    with engine.namespace(ANN) as (connection, _):
        return [text for (text,) in connection.execute("SELECT text FROM topic_claims ORDER BY id")]


def dropped(told: JsonObject) -> dict[str, int]:
    counts = Counter[str]()
    for one in told["dropped"]:
        counts[one["reason"]] += one["count"]
    return counts


def waiting(engine: MemoryEngine, scope: Scope = ANN) -> int:
    """Messages that no model has read."""
    with engine.namespace(scope) as (connection, namespace):
        assert namespace is not None
        query = (
            "SELECT count(*) FROM messages WHERE namespace_id = ? AND role <> 'system' "
            "AND id NOT IN (SELECT message_id FROM described)"
        )
        return int(connection.execute(query, (namespace.id,)).get)
