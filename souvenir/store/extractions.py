"""Every statement about extractions: the transcript that a job reads, and its ledger of facts.

Each function takes a connection inside a transaction. What belongs to a job goes when its row in `jobs` goes.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import apsw

from souvenir.decisions import FactRow, FactStage, Phase, decision_json, decision_of, fact_json, fact_of
from souvenir.moments import from_us, to_us
from souvenir.store.facts import SPLIT
from souvenir.store.learned import LearnedWith, Party
from souvenir.store.reads import Namespace, visible_condition
from souvenir.store.rows import ids_parameter, to_json
from souvenir.types import JsonObject

LEARNED_WITH = "learned_with"
"""The key of an extraction's options that says whom it was learned with."""


@dataclass(frozen=True, slots=True)
class Extraction:
    """What a job learns from, and how far it is.

    :param transcript: As it is kept; None once it is forgotten.
    :param options: How it was asked for.
    :param calls: What the model was asked and what it cost, an object a call.
    """

    job_id: str
    namespace: str
    source: str
    context: str
    message_length: int
    transcript: str | None
    document_at: datetime | None
    options: JsonObject
    phase: Phase = Phase.PROPOSING
    calls: tuple[JsonObject, ...] = ()

    @property
    def learned_with(self) -> LearnedWith:
        """Whom the conversation was with, and its session, as far as that is known."""
        found: LearnedWith = self.options.get(LEARNED_WITH, {})
        return found


_READ_NO_MORE = "('decided', 'applied', 'undone')"
"""Phases in which a job has taken from its transcript what it needs."""

_UNFINISHED = "(SELECT id FROM jobs WHERE status IN ('queued', 'running'))"

_COLUMNS = "job_id, namespace, source, context, message_length, transcript, document_at, options, phase, calls"


def insert(connection: apsw.Connection, extraction: Extraction) -> None:
    connection.execute(
        f"INSERT INTO extractions ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            extraction.job_id,
            extraction.namespace,
            extraction.source,
            extraction.context,
            extraction.message_length,
            extraction.transcript,
            None if extraction.document_at is None else to_us(extraction.document_at),
            to_json(dict(extraction.options)),
            extraction.phase.value,
            to_json(list(extraction.calls)),
        ),
    )


def find(connection: apsw.Connection, job_id: str) -> Extraction | None:
    row: Any = connection.execute(f"SELECT {_COLUMNS} FROM extractions WHERE job_id = ?", (job_id,)).fetchone()
    if row is None:
        return None
    return Extraction(
        job_id=row[0],
        namespace=row[1],
        source=row[2],
        context=row[3],
        message_length=row[4],
        transcript=row[5],
        document_at=None if row[6] is None else from_us(row[6]),
        options=json.loads(row[7]),
        phase=Phase(row[8]),
        calls=tuple(json.loads(row[9])),
    )


def set_phase(connection: apsw.Connection, job_id: str, phase: Phase) -> None:
    """Also forget the transcript, if a memory that a fact was about was forgotten while it was still needed."""
    connection.execute("UPDATE extractions SET phase = ? WHERE job_id = ?", (phase.value, job_id))
    connection.execute(
        f"UPDATE extractions SET transcript = NULL WHERE job_id = ? AND phase IN {_READ_NO_MORE} "
        "AND EXISTS (SELECT 1 FROM extraction_facts f WHERE f.job_id = extractions.job_id AND proposal IS NULL)",
        (job_id,),
    )


def set_options(connection: apsw.Connection, job_id: str, options: JsonObject) -> None:
    connection.execute("UPDATE extractions SET options = ? WHERE job_id = ?", (to_json(dict(options)), job_id))


def add_calls(connection: apsw.Connection, job_id: str, calls: Iterable[JsonObject]) -> None:
    """Note what the model was asked, after what stands there."""
    for call in calls:
        connection.execute(
            "UPDATE extractions SET calls = json_insert(calls, '$[#]', json(?)) WHERE job_id = ?",
            (to_json(dict(call)), job_id),
        )


def facts(connection: apsw.Connection, job_id: str) -> list[FactRow]:
    """The job's ledger in its order."""
    rows: Any = connection.execute(
        "SELECT ordinal, stage, proposal, decision, outcome, memory_id FROM extraction_facts "
        "WHERE job_id = ? ORDER BY ordinal",
        (job_id,),
    )
    return [
        FactRow(
            ordinal=ordinal,
            stage=FactStage(stage),
            fact=None if proposal is None else fact_of(json.loads(proposal)),
            decision=None if decision is None else decision_of(json.loads(decision)),
            outcome={} if outcome is None else json.loads(outcome),
            memory_id=memory_id,
        )
        for ordinal, stage, proposal, decision, outcome, memory_id in rows
    ]


def save_facts(connection: apsw.Connection, job_id: str, rows: Sequence[FactRow]) -> None:
    """Write these rows of the ledger, new ones and those that stand there already."""
    connection.executemany(
        "INSERT OR REPLACE INTO extraction_facts "
        "(job_id, ordinal, stage, proposal, decision, outcome, memory_id, target_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                job_id,
                row.ordinal,
                row.stage.value,
                None if row.fact is None else to_json(fact_json(row.fact)),
                None if row.decision is None else to_json(decision_json(row.decision)),
                to_json(dict(row.outcome)) if row.outcome else None,
                row.memory_id,
                None if row.decision is None or row.decision.target is None else row.decision.target.memory_id,
            )
            for row in rows
        ],
    )


def versions(connection: apsw.Connection, namespace: Namespace, memory_ids: Iterable[int]) -> dict[int, int]:
    """The version of each of the memories that is there and may be seen: the id of its last row in the history.

    Facts are no part of it: a memory that was split again says what it said.
    """
    visible, parameters = visible_condition(namespace.sources)
    rows: Any = connection.execute(
        "SELECT id, (SELECT max(h.id) FROM history h WHERE h.memory_id = m.id AND h.action <> ?) FROM memories m "
        f"WHERE id IN (SELECT value FROM json_each(?)) AND namespace_id = ? AND {visible}",
        (SPLIT, ids_parameter(memory_ids), namespace.id, *parameters),
    )
    return {memory_id: version or 0 for memory_id, version in rows}


def gone(connection: apsw.Connection, memory_ids: Iterable[int]) -> set[int]:
    """Those of the ids that no memory of any namespace has: it was deleted, since ids are never used again."""
    rows: Any = connection.execute(
        "SELECT value FROM json_each(?) WHERE value NOT IN (SELECT id FROM memories)", (ids_parameter(memory_ids),)
    )
    return {memory_id for (memory_id,) in rows}


def forget_memories(connection: apsw.Connection, memory_ids: Iterable[int]) -> None:
    """Blank what ledgers say of memories that are forgotten, and the transcripts that those were learned from."""
    chosen = ids_parameter(memory_ids)
    rows: Any = connection.execute(
        "UPDATE extraction_facts SET proposal = NULL, decision = NULL, outcome = NULL "
        "WHERE memory_id IN (SELECT value FROM json_each(?)) OR target_id IN (SELECT value FROM json_each(?)) "
        "RETURNING job_id",
        (chosen, chosen),
    )
    jobs = {job_id for (job_id,) in rows}
    connection.execute(
        f"UPDATE extractions SET transcript = NULL WHERE job_id IN (SELECT value FROM json_each(?)) "
        f"AND (phase IN {_READ_NO_MORE} OR job_id NOT IN {_UNFINISHED})",
        (to_json(sorted(jobs)),),
    )


def forget_transcripts(connection: apsw.Connection, namespace: str) -> None:
    """Blank every transcript and ledger of a namespace, and tell what is unfinished there to end."""
    _forget(connection, "SELECT job_id FROM extractions WHERE namespace = ?", namespace)


def forget_learned_with(connection: apsw.Connection, namespace: str, party: Party, name: str) -> None:
    """Blank the transcripts and ledgers of what is learned with somebody, and tell what is unfinished of it to end."""
    _forget(
        connection,
        "SELECT job_id FROM extractions WHERE namespace = ? "
        f"AND EXISTS (SELECT 1 FROM json_each(options, '$.{LEARNED_WITH}.{party.value}') WHERE value = ?)",
        namespace,
        name,
    )


def _forget(connection: apsw.Connection, query: str, *parameters: str) -> None:
    rows: Any = connection.execute(query, parameters)
    chosen = to_json([job_id for (job_id,) in rows])
    of_these = "IN (SELECT value FROM json_each(?))"
    connection.execute(
        f"UPDATE jobs SET cancel_requested = 1 WHERE id {of_these} AND id IN {_UNFINISHED}",
        (chosen,),
    )
    connection.execute(
        "UPDATE extractions SET transcript = NULL, "
        f"options = json_remove(options, '$.{LEARNED_WITH}') WHERE job_id {of_these}",
        (chosen,),
    )
    connection.execute(
        f"UPDATE extraction_facts SET proposal = NULL, decision = NULL, outcome = NULL WHERE job_id {of_these}",
        (chosen,),
    )
