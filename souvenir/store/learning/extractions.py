"""Rows of extractions: the transcript of a job, its ledger of facts, and the provenance of memories.

Each function takes a connection inside a transaction. Transcript and ledger are deleted with the job's row in `jobs`.

Provenance is the users and sessions that a memory was learned with, by their public names. Only jobs write it. It is
stored separately from metadata, so that callers cannot change it and privacy rules do not redact it. A replacing
memory inherits it, and it is deleted with its memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

import apsw

from souvenir.core.ledger import DECISION_JSON, FACT_JSON, FactRow, FactStage, Phase
from souvenir.core.stored_json import to_json
from souvenir.core.timestamps import to_us
from souvenir.core.types import JsonObject
from souvenir.store.memories.facts import SPLIT
from souvenir.store.messages import sessions
from souvenir.store.namespaces import Namespace, visible_condition
from souvenir.store.rows import first, ids_parameter, select
from souvenir.store.schema import has_table


class Party(StrEnum):
    """Kinds of provenance."""

    USER = "user"
    SESSION = "session"


LearnedWith = Mapping[str, Sequence[str]]
"""Names by party, as in the JSON."""


def provenance_of(connection: apsw.Connection, namespace: str, user: str | None, session: str | None) -> LearnedWith:
    """Return a conversation's user and session; without a named user, the session's user."""
    if user is None and session is not None:
        row = first(connection, int, "SELECT id FROM namespaces WHERE name = ?", (namespace,))
        found = None if row is None else sessions.find(connection, row, session)
        user = None if found is None else found.user
    named = {Party.USER.value: user, Party.SESSION.value: session}
    return {party: [name] for party, name in named.items() if name is not None}


def together(several: Iterable[LearnedWith]) -> LearnedWith:
    """Merge several provenances."""
    names: dict[str, dict[str, None]] = {}
    for one in several:
        for party, of_party in one.items():
            names.setdefault(party, {}).update(dict.fromkeys(of_party))
    return {party: list(of_party) for party, of_party in names.items()}


def note(connection: apsw.Connection, memory_id: int, learned_with: LearnedWith) -> None:
    """Add to the provenance of a memory."""
    connection.executemany(
        "INSERT OR IGNORE INTO learned_with (kind, name, memory_id) VALUES (?, ?, ?)",
        [(party, name, memory_id) for party, names in learned_with.items() for name in names],
    )


def carry(connection: apsw.Connection, memory_ids: Iterable[int], new_id: int) -> None:
    """Copy the provenance of memories to the memory that replaces them."""
    connection.execute(
        "INSERT OR IGNORE INTO learned_with (kind, name, memory_id) "
        "SELECT kind, name, ? FROM learned_with WHERE memory_id IN (SELECT value FROM json_each(?))",
        (new_id, ids_parameter(memory_ids)),
    )


def memories_of(connection: apsw.Connection, namespace_id: int, party: Party, name: str) -> list[int]:
    """Return the memories learned with a user or session, including archived ones; the schema may be an older one."""
    if not has_table(connection, "learned_with"):
        return []
    return list(
        select(
            connection,
            int,
            "SELECT memory_id FROM learned_with JOIN memories ON id = memory_id "
            "WHERE kind = ? AND name = ? AND namespace_id = ? ORDER BY memory_id",
            (party.value, name, namespace_id),
        )
    )


LEARNED_WITH = "learned_with"
"""The key of the provenance in an extraction's options."""


@dataclass(frozen=True, slots=True)
class ExtractionRecord:
    """The input and progress of an extraction job.

    :param transcript: The stored transcript; None once it is deleted.
    :param options: The options of the request.
    :param calls: One object per call of the model, with its usage and cost.
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
        """The user and session of the conversation, as far as known."""
        found: LearnedWith = self.options.get(LEARNED_WITH, {})
        return found


_TRANSCRIPT_UNUSED = "('decided', 'applied', 'undone')"
"""Phases in which a job no longer needs its transcript."""

_UNFINISHED = "(SELECT id FROM jobs WHERE status IN ('queued', 'running'))"

_COLUMNS = "job_id, namespace, source, context, message_length, transcript, document_at, options, phase, calls"


def insert(connection: apsw.Connection, extraction: ExtractionRecord) -> None:
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


def find(connection: apsw.Connection, job_id: str) -> ExtractionRecord | None:
    return first(connection, ExtractionRecord, f"SELECT {_COLUMNS} FROM extractions WHERE job_id = ?", (job_id,))


def set_phase(connection: apsw.Connection, job_id: str, phase: Phase) -> None:
    """Also delete the transcript if a memory in the ledger was forgotten while the transcript was still needed."""
    connection.execute("UPDATE extractions SET phase = ? WHERE job_id = ?", (phase.value, job_id))
    connection.execute(
        f"UPDATE extractions SET transcript = NULL WHERE job_id = ? AND phase IN {_TRANSCRIPT_UNUSED} "
        "AND EXISTS (SELECT 1 FROM extraction_facts f WHERE f.job_id = extractions.job_id AND proposal IS NULL)",
        (job_id,),
    )


def set_options(connection: apsw.Connection, job_id: str, options: JsonObject) -> None:
    connection.execute("UPDATE extractions SET options = ? WHERE job_id = ?", (to_json(dict(options)), job_id))


def add_calls(connection: apsw.Connection, job_id: str, calls: Iterable[JsonObject]) -> None:
    """Append calls of the model."""
    for call in calls:
        connection.execute(
            "UPDATE extractions SET calls = json_insert(calls, '$[#]', json(?)) WHERE job_id = ?",
            (to_json(dict(call)), job_id),
        )


def facts(connection: apsw.Connection, job_id: str) -> list[FactRow]:
    """Return the job's ledger in order."""
    rows = select(
        connection,
        tuple[int, FactStage, JsonObject | None, JsonObject | None, JsonObject | None, int | None],
        "SELECT ordinal, stage, proposal, decision, outcome, memory_id FROM extraction_facts "
        "WHERE job_id = ? ORDER BY ordinal",
        (job_id,),
    )
    return [
        FactRow(
            ordinal=ordinal,
            stage=stage,
            fact=None if proposal is None else FACT_JSON.load(proposal),
            decision=None if decision is None else DECISION_JSON.load(decision),
            outcome=outcome or {},
            memory_id=memory_id,
        )
        for ordinal, stage, proposal, decision, outcome, memory_id in rows
    ]


def save_facts(connection: apsw.Connection, job_id: str, rows: Sequence[FactRow]) -> None:
    """Upsert rows of the ledger."""
    connection.executemany(
        "INSERT OR REPLACE INTO extraction_facts "
        "(job_id, ordinal, stage, proposal, decision, outcome, memory_id, target_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (
                job_id,
                row.ordinal,
                row.stage.value,
                None if row.fact is None else to_json(FACT_JSON.dump(row.fact)),
                None if row.decision is None else to_json(DECISION_JSON.dump(row.decision)),
                to_json(dict(row.outcome)) if row.outcome else None,
                row.memory_id,
                None if row.decision is None or row.decision.target is None else row.decision.target.memory_id,
            )
            for row in rows
        ],
    )


def versions(connection: apsw.Connection, namespace: Namespace, memory_ids: Iterable[int]) -> dict[int, int]:
    """Return the version of each visible memory: the id of its last history row.

    Later splits into facts do not count, since they do not change the text.
    """
    visible, parameters = visible_condition(namespace.sources)
    rows = select(
        connection,
        tuple[int, int | None],
        "SELECT id, (SELECT max(h.id) FROM history h WHERE h.memory_id = m.id AND h.action <> ?) FROM memories m "
        f"WHERE id IN (SELECT value FROM json_each(?)) AND namespace_id = ? AND {visible}",
        (SPLIT, ids_parameter(memory_ids), namespace.id, *parameters),
    )
    return {memory_id: version or 0 for memory_id, version in rows}


def gone(connection: apsw.Connection, memory_ids: Iterable[int]) -> set[int]:
    """Return those of the ids that no memory of any namespace has: they were deleted, since ids are never reused."""
    return set(
        select(
            connection,
            int,
            "SELECT value FROM json_each(?) WHERE value NOT IN (SELECT id FROM memories)",
            (ids_parameter(memory_ids),),
        )
    )


def forget_memories(connection: apsw.Connection, memory_ids: Iterable[int]) -> None:
    """Blank forgotten memories in ledgers, and the transcripts that they were learned from."""
    chosen = ids_parameter(memory_ids)
    rows = select(
        connection,
        str,
        "UPDATE extraction_facts SET proposal = NULL, decision = NULL, outcome = NULL "
        "WHERE memory_id IN (SELECT value FROM json_each(?)) OR target_id IN (SELECT value FROM json_each(?)) "
        "RETURNING job_id",
        (chosen, chosen),
    )
    jobs = set(rows)
    connection.execute(
        f"UPDATE extractions SET transcript = NULL WHERE job_id IN (SELECT value FROM json_each(?)) "
        f"AND (phase IN {_TRANSCRIPT_UNUSED} OR job_id NOT IN {_UNFINISHED})",
        (to_json(sorted(jobs)),),
    )


def forget_transcripts(connection: apsw.Connection, namespace: str) -> None:
    """Blank every transcript and ledger of a namespace, and cancel its unfinished extractions."""
    _forget(connection, "SELECT job_id FROM extractions WHERE namespace = ?", namespace)


def forget_learned_with(connection: apsw.Connection, namespace: str, party: Party, name: str) -> None:
    """Blank transcripts and ledgers of conversations with a user or session, and cancel unfinished ones."""
    _forget(
        connection,
        "SELECT job_id FROM extractions WHERE namespace = ? "
        f"AND EXISTS (SELECT 1 FROM json_each(options, '$.{LEARNED_WITH}.{party.value}') WHERE value = ?)",
        namespace,
        name,
    )


def _forget(connection: apsw.Connection, query: str, *parameters: str) -> None:
    rows = select(connection, str, query, parameters)
    chosen = to_json(list(rows))
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
