"""Results of extractions for clients: actions and counts, computed from the ledger.

The stored result of a job holds ids and counts; texts stay in the ledger, so that forgetting a memory forgets them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from souvenir.core.errors import LLMError
from souvenir.core.ledger import DECISION_JSON, FACT_JSON, DecidedBy, Decision, FactRow, FactStage, LedgerFact, Verdict
from souvenir.core.timestamps import from_us
from souvenir.core.types import JsonObject, LinkType, Scope
from souvenir.learning.application import FALLBACK_ADD, UNDO
from souvenir.learning.decisions import FAULT
from souvenir.learning.novelty import RELATED
from souvenir.learning.questions import AUDN, EXTRACT
from souvenir.learning.undo import UNDONE_AT
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.similarity import cosine
from souvenir.store.learning.extractions import ExtractionRecord
from souvenir.store.memories import duplicates

LLM = "llm"
"""The mode in which a model finds and decides facts; the other mode is `FALLBACK_ADD`."""

DRY_RUN, DEBUG, MODE, GUIDANCE = "dry_run", "debug", "mode", "guidance"
"""Keys of an extraction's options."""

COMPACTION_SIMILARITY = 0.75
"""Cosine from which two memories are candidates for a merge."""

_OWN = (UNDO, FAULT, RELATED, "links")
"""Outcome keys that are not shown to clients."""

_COUNTED = {
    "stored_count": ("add", "conflict", FALLBACK_ADD),
    "updated_count": ("update",),
    "deleted_count": ("delete",),
    "noop_count": ("noop",),
    "conflict_count": ("conflict",),
    "fallback_count": (FALLBACK_ADD,),
    "skipped_count": ("skipped",),
    "error_count": ("error",),
}
_TARGET_IS = {
    Verdict.UPDATE: "old_id",
    Verdict.DELETE: "old_id",
    Verdict.NOOP: "existing_id",
    Verdict.CONFLICT: "conflicts_with",
}


def kept_result(
    engine: MemoryEngine, scope: Scope, extraction: ExtractionRecord, rows: Sequence[FactRow]
) -> JsonObject:
    """Return the stored result of an applied job."""
    links = [
        {"from_id": row.memory_id, "to_id": one, "type": LinkType.RELATED_TO.value}
        for row in rows
        for one in _links(row)
    ]
    return {
        **waiting_result(extraction, rows),
        "links_created": links,
        "compaction_candidates": _near_pairs(engine, scope, rows),
    }


def waiting_result(extraction: ExtractionRecord, rows: Sequence[FactRow]) -> JsonObject:
    """Return the result of a job whose decisions are not applied: a dry run, or one that needs approval."""
    costs = [call.get("cost_usd") for call in extraction.calls]
    known = [cost for cost in costs if cost is not None]
    return {
        **({DRY_RUN: True} if extraction.options.get(DRY_RUN) else {}),
        "mode": extraction.options.get(MODE, LLM),
        **_counts(rows, would=bool(extraction.options.get(DRY_RUN))),
        "tokens": {stage: _tokens(extraction.calls, stage) for stage in (EXTRACT, AUDN)},
        "cost_usd": round(sum(known), 6) if known else None,
        "links_created": [],
        "compaction_candidates": [],
        "promotion_candidates": [],
    }


def empty_result(extraction: ExtractionRecord, reason: str) -> JsonObject:
    """Return the result of a job with an empty transcript. :param reason: One word."""
    return {**waiting_result(extraction, ()), "skipped_reason": reason}


def failed_result(extraction: ExtractionRecord, rows: Sequence[FactRow], stage: str, failure: LLMError) -> JsonObject:
    """Return the result of a job whose model failed; nothing was applied."""
    details = {"error": "provider_runtime_failure", "error_stage": stage, "error_message": failure.message}
    return {**waiting_result(extraction, rows), **details, "error_code": failure.code}


def result_of(result: JsonObject, extraction: ExtractionRecord, rows: Sequence[FactRow]) -> JsonObject:
    """Return the complete client-visible result.

    :param result: The stored result.
    :param rows: The ledger, in order.
    """
    planned = bool(extraction.options.get(DRY_RUN))
    actions = [_planned_of(row, extraction.job_id) if planned else action_of(row, extraction.job_id) for row in rows]
    named = {"job_id": extraction.job_id, "result_url": f"/memory/extract/{extraction.job_id}"}
    whole = {**result, "actions": actions, **named, **_undone(extraction)}
    return {**whole, "debug_trace": _trace(extraction, rows)} if extraction.options.get(DEBUG) else whole


def _undone(extraction: ExtractionRecord) -> JsonObject:
    """Return the undo mark; actions and counts stay unchanged."""
    at = extraction.options.get(UNDONE_AT)
    return {} if at is None else {"undone": True, UNDONE_AT: from_us(at).isoformat(timespec="microseconds")}


def _planned_of(row: FactRow, job_id: str) -> JsonObject:
    """Return the decision of a dry run about a fact: a verdict in capitals, and the number of the fact."""
    action = action_of(row, job_id)
    if row.decision is None or "action" in row.outcome:
        return {**action, "fact_index": row.ordinal}
    return {**action, "action": row.decision.verdict.value, "fact_index": row.ordinal}


def action_of(row: FactRow, job_id: str) -> JsonObject:
    """Return the outcome of a fact, or its decision if there is no outcome yet."""
    named = {"job_id": job_id, "ordinal": row.ordinal}
    if row.fact is None:
        return {"action": "forgotten", **named}
    came = {key: value for key, value in row.outcome.items() if key not in _OWN}
    about = {"action": row.stage.value, "text": row.fact.text, "fact": _shown_fact(row.fact)}
    decided = {} if row.decision is None else _decided(row.decision, row.fact.text, came=bool(came.get("action")))
    return {**about, **decided, **came, **named}


def _shown_fact(fact: LedgerFact) -> JsonObject:
    return {**FACT_JSON.dump(fact), "category": fact.category.value.lower()}


def _decided(decision: Decision, text: str, *, came: bool) -> JsonObject:
    """:param came: True if there is an outcome, which then names the action."""
    by_fallback = decision.by is DecidedBy.FALLBACK
    shown: dict[str, Any] = {"reason": decision.reason, "decided_by": decision.by.value, "prompt": decision.prompt}
    if decision.similarity is not None:
        shown["similarity"] = decision.similarity
    if by_fallback:
        shown["mode"] = FALLBACK_ADD
    if came:
        return shown
    shown["action"] = (
        FALLBACK_ADD if by_fallback and decision.verdict is Verdict.ADD else decision.verdict.value.lower()
    )
    if decision.target is not None and decision.verdict in _TARGET_IS:
        shown[_TARGET_IS[decision.verdict]] = decision.target.memory_id
    if decision.verdict is Verdict.UPDATE:
        shown["new_text"] = decision.text or text
    return shown


def _counts(rows: Sequence[FactRow], *, would: bool) -> JsonObject:
    """Count facts by outcome.

    :param would: If true, decided facts count by their decision; otherwise they are not counted.
    """
    actions = Counter((action_of(row, "") if would else row.outcome).get("action") for row in rows)
    counted = {name: sum(actions[action] for action in of) for name, of in _COUNTED.items()}
    gated = [row for row in rows if row.decision is not None and row.decision.by is DecidedBy.NOVELTY]
    found = [row for row in rows if row.decision is not None or row.stage is FactStage.PROPOSED]
    return {"extracted_count": len(found), **counted, "gated_count": len(gated)}


def _tokens(calls: Iterable[JsonObject], stage: str) -> JsonObject:
    of_stage = [call for call in calls if call.get("stage") == stage]
    return {side: sum(call.get(f"{side}_tokens", 0) for call in of_stage) for side in ("input", "output")}


def _links(row: FactRow) -> Sequence[int]:
    found: Sequence[int] = row.outcome.get("links", ())
    return found


def _near_pairs(engine: MemoryEngine, scope: Scope, rows: Sequence[FactRow]) -> list[JsonObject]:
    """Return pairs of a new memory and a linked one that may say the same, nearest first."""
    pairs = [(row.memory_id, one) for row in rows if row.memory_id is not None for one in _links(row)]
    if not pairs:
        return []
    ids = np.array(sorted({one for pair in pairs for one in pair}), dtype=np.int64)
    embedder = engine.models.serving.embedder
    with engine.namespace(scope) as (connection, _):
        found = duplicates.mean_vectors(connection, ids, model_id=embedder.model_id, dim=embedder.dim)
    by_id = dict(zip(ids.tolist(), found, strict=True))
    near = sorted(((cosine(by_id[one], by_id[other]), one, other) for one, other in pairs), reverse=True)
    return [
        {"ids": [one, other], "similarity": round(likeness, 4)}
        for likeness, one, other in near
        if likeness >= COMPACTION_SIMILARITY
    ]


def _trace(extraction: ExtractionRecord, rows: Sequence[FactRow]) -> JsonObject:
    """Return every model call, and every decision with the candidates that were shown."""
    facts = [
        {
            "ordinal": row.ordinal,
            "stage": row.stage.value,
            "decision": None if row.decision is None else DECISION_JSON.dump(row.decision),
        }
        for row in rows
    ]
    return {"calls": list(extraction.calls), "facts": facts}
