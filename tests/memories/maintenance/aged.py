"""Memories of a given age."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from souvenir.core.settings import Settings
from souvenir.core.types import JsonObject, MemoryDraft, Origin, Scope
from souvenir.jobs.worker import Jobs
from souvenir.memories.consolidation import Consolidation
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.retention import PolicyEnforcement, Pruning
from souvenir.models.llm.prompts import Prompt
from souvenir.store.transaction import Transaction
from tests.learning.scripted_model import ScriptedModel
from tests.memories.engine.verbs import DEFAULT

NOW = datetime(2025, 6, 1, 12, tzinfo=UTC)


def days_ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def aged(
    engine: MemoryEngine,
    text: str,
    source: str = "notes",
    *,
    created: float,
    changed: float | None = None,
    scope: Scope = DEFAULT,
    **fields: Any,
) -> int:
    """:param created: Days before `NOW`. :param changed: The same, if it was changed since."""
    origin = Origin(days_ago(created), days_ago(created if changed is None else changed))
    return aged_all(engine, [(MemoryDraft(text, source, **fields), origin)], scope)[0]


def aged_all(engine: MemoryEngine, wanted: Sequence[tuple[MemoryDraft, Origin]], scope: Scope = DEFAULT) -> list[int]:
    prepared = engine.prepare([draft.text for draft, _ in wanted])

    def work(tx: Transaction) -> list[int]:
        return [
            tx.insert(draft, passages, origin=origin).id
            for (draft, origin), passages in zip(wanted, prepared, strict=True)
        ]

    return engine.write(scope, work)


def jobs_over(engine: MemoryEngine) -> Jobs:
    return Jobs(engine, [Pruning(engine), PolicyEnforcement(engine)], queue_max=10, retention_days=1)


def merging_over(engine: MemoryEngine) -> Jobs:
    """Return a model that repeats the first statement."""

    def says(prompt: Prompt) -> JsonObject:
        return {"merge": True, "text": json.loads(prompt.user)[0]["statement"], "reason": "they say the same"}

    return Consolidation(engine, ScriptedModel({"consolidate": says}), Settings()).jobs
