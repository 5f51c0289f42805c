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

from souvenir.core.ledger import DECISION_JSON, FACT_JSON, FactRow, FactStage, Phase
from souvenir.core.stored_json import to_json
from souvenir.core.timestamps import to_us
from souvenir.core.types import JsonObject
from souvenir.store.memories.facts import SPLIT
from souvenir.store.messages import sessions
from souvenir.store.namespaces import Namespace, visible_condition
from souvenir.store.rows import first, ids_parameter, select
from souvenir.store.sql import Connection
from souvenir.store.sqlite.schema import has_table


class Party(StrEnum):
    """Kinds of provenance."""

    USER = "user"
    SESSION = "session"


LearnedWith = Mapping[str, Sequence[str]]
"""Names by party, as in the JSON."""


def provenance_of(connection: Connection, namespace: str, user: str | None, session: str | None) -> LearnedWith:
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


def note(connection: Connection, memory_id: int, learned_with: LearnedWith) -> None:
    """Add to the provenance of a memory."""
    connection.executemany(
        "INSERT INTO learned_with (kind, name, memory_id) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        [(party, name, memory_id) for party, names in learned_with.items() for name in names],
    )


def carry(connection: Connection, memory_ids: Iterable[int], new_id: int) -> None:
    """Copy the provenance of memories to the memory that replaces them."""
    connection.execute(
        "INSERT INTO learned_with (kind, name, memory_id) SELECT DISTINCT kind, name, CAST(? AS BIGINT) "
        "FROM learned_with WHERE memory_id IN (SELECT value FROM json_each(?)) ON CONFLICT DO NOTHING",
        (new_id, ids_parameter(memory_ids)),
    )


def memories_of(connection: Connection, namespace_id: int, party: Party, name: str) -> list[int]:
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

TAKEN = "taken"
"""The key of the facts that a commit took from dry runs: the job id and the ordinal there, by its own ordinal."""

FORGOTTEN = "transcript_forgotten"
"""The key that is true if a transcript must not be read again, once its own job has read it."""

RERUN_OF = "rerun_of"
"""The key of the first job that read a transcript which a rerun reads again."""


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
    def model(self) -> str | None:
        """The model of its first call; None if no model was called."""
        return next((call.get("model") for call in self.calls), None)

    @property
    def kept_transcript(self) -> str | None:
        """The transcript for others than its own job; None if it is deleted, or will be after the job read it."""
        return None if self.options.get(FORGOTTEN) else self.transcript

    @property
    def learned_with(self) -> LearnedWith:
        """The user and session of the conversation, as far as known."""
        found: LearnedWith = self.options.get(LEARNED_WITH, {})
        return found


_TRANSCRIPT_UNUSED = "('decided', 'applied', 'undone')"
"""Phases in which a job no longer needs its transcript."""

_UNFINISHED = "(SELECT id FROM jobs WHERE status IN ('queued', 'running'))"

_COLUMNS = "job_id, namespace, source, context, message_length, transcript, document_at, options, phase, calls"


def insert(connection: Connection, extraction: ExtractionRecord) -> None:
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


def find(connection: Connection, job_id: str) -> ExtractionRecord | None:
    return first(connection, ExtractionRecord, f"SELECT {_COLUMNS} FROM extractions WHERE job_id = ?", (job_id,))


def set_phase(connection: Connection, job_id: str, phase: Phase) -> None:
    """Also delete the transcript if it, or a memory in the ledger, was forgotten while it was still needed."""
    connection.execute("UPDATE extractions SET phase = ? WHERE job_id = ?", (phase.value, job_id))
    connection.execute(
        f"UPDATE extractions SET transcript = NULL WHERE job_id = ? AND phase IN {_TRANSCRIPT_UNUSED} "
        f"AND (options ->> '$.{FORGOTTEN}' IS NOT NULL "
        "OR EXISTS (SELECT 1 FROM extraction_facts f WHERE f.job_id = extractions.job_id AND proposal IS NULL))",
        (job_id,),
    )


def blank_if_forgotten(connection: Connection, job_id: str) -> None:
    """Delete the transcript of a job that ends if it was forgotten meanwhile."""
    connection.execute(
        f"UPDATE extractions SET transcript = NULL WHERE job_id = ? AND options ->> '$.{FORGOTTEN}' IS NOT NULL",
        (job_id,),
    )


def set_options(connection: Connection, job_id: str, options: JsonObject) -> None:
    connection.execute("UPDATE extractions SET options = ? WHERE job_id = ?", (to_json(dict(options)), job_id))


def add_calls(connection: Connection, job_id: str, calls: Iterable[JsonObject]) -> None:
    """Append calls of the model."""
    for call in calls:
        connection.execute(
            "UPDATE extractions SET calls = json_insert(calls, '$[#]', json(?)) WHERE job_id = ?",
            (to_json(dict(call)), job_id),
        )


def facts(connection: Connection, job_id: str) -> list[FactRow]:
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


def save_facts(connection: Connection, job_id: str, rows: Sequence[FactRow]) -> None:
    """Upsert rows of the ledger."""
    connection.executemany(
        "INSERT INTO extraction_facts "
        "(job_id, ordinal, stage, proposal, decision, outcome, memory_id, target_id) VALUES (?, ?, ?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (job_id, ordinal) DO UPDATE SET stage = excluded.stage, proposal = excluded.proposal, "
        "decision = excluded.decision, outcome = excluded.outcome, memory_id = excluded.memory_id, "
        "target_id = excluded.target_id",
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


@dataclass(frozen=True, slots=True)
class ExtractionSummary:
    """Summary of an extraction for lists.

    :param model: The model of its first call; None if no model was called.
    """

    job_id: str
    source: str
    context: str
    message_length: int
    options: JsonObject
    model: str | None


def summaries(connection: Connection, job_ids: Iterable[str]) -> dict[str, ExtractionSummary]:
    """Return the existing ones of these extractions, without their transcripts."""
    rows = select(
        connection,
        ExtractionSummary,
        "SELECT job_id, source, context, message_length, options, calls ->> '$[0].model' FROM extractions "
        "WHERE job_id IN (SELECT atom FROM json_each(?))",
        (to_json(list(job_ids)),),
    )
    return {row.job_id: row for row in rows}


def ordinal_of(connection: Connection, job_id: str, memory_id: int) -> int | None:
    """Return the ordinal of the fact that a job stored as a memory; None if it is not kept."""
    return first(
        connection,
        int,
        "SELECT max(ordinal) FROM extraction_facts WHERE memory_id = ? AND job_id = ? AND proposal IS NOT NULL "
        "GROUP BY job_id",
        (memory_id, job_id),
    )


def parties_of(connection: Connection, memory_id: int) -> LearnedWith:
    """Return the users and sessions that a memory was learned with, by name."""
    rows = select(
        connection,
        tuple[str, str],
        "SELECT kind, name FROM learned_with WHERE memory_id = ? ORDER BY kind, name",
        (memory_id,),
    )
    found: dict[str, list[str]] = {}
    for kind, name in rows:
        found.setdefault(kind, []).append(name)
    return found


def versions(connection: Connection, namespace: Namespace, memory_ids: Iterable[int]) -> dict[int, int]:
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


def gone(connection: Connection, memory_ids: Iterable[int]) -> set[int]:
    """Return those of the ids that no memory of any namespace has: they were deleted, since ids are never reused."""
    return set(
        select(
            connection,
            int,
            "SELECT value FROM json_each(?) WHERE value NOT IN (SELECT id FROM memories)",
            (ids_parameter(memory_ids),),
        )
    )


def forget_memories(connection: Connection, memory_ids: Iterable[int]) -> None:
    """Blank forgotten memories in ledgers, and the transcripts that they were learned from.

    This includes the dry run that a fact was taken from, and what reruns found in the same words.
    """
    chosen = ids_parameter(memory_ids)
    found = set(
        select(
            connection,
            tuple[str, int],
            "SELECT job_id, ordinal FROM extraction_facts "
            "WHERE memory_id IN (SELECT value FROM json_each(?)) OR target_id IN (SELECT value FROM json_each(?))",
            (chosen, chosen),
        )
    )
    if not found:
        return
    found |= _same_facts(connection, found)
    jobs = {job_id for job_id, _ in found}
    connection.executemany(
        "UPDATE extraction_facts SET proposal = NULL, decision = NULL, outcome = NULL WHERE job_id = ? AND ordinal = ?",
        sorted(found),
    )
    connection.execute(
        f"UPDATE extractions SET transcript = NULL WHERE job_id IN (SELECT atom FROM json_each(?)) "
        f"AND (phase IN {_TRANSCRIPT_UNUSED} OR job_id NOT IN {_UNFINISHED})",
        (to_json(sorted(jobs)),),
    )


def forget_said(connection: Connection, namespace_id: int, message_ids: Iterable[int]) -> None:
    """Blank the transcripts of the sessions that contain these messages, before a message is deleted or changed."""
    session = f"json_each(options, '$.{LEARNED_WITH}.{Party.SESSION.value}')"
    found = select(
        connection,
        str,
        "SELECT job_id FROM extractions WHERE transcript IS NOT NULL "
        "AND namespace = (SELECT name FROM namespaces WHERE id = ?) "
        f"AND EXISTS (SELECT 1 FROM {session} WHERE atom IN (SELECT s.name FROM messages m "
        "JOIN sessions s ON s.id = m.session_id WHERE m.id IN (SELECT value FROM json_each(?))))",
        (namespace_id, ids_parameter(message_ids)),
    )
    blank_transcripts(connection, list(found))


def with_transcripts(connection: Connection, namespace: str) -> list[str]:
    """Return the extractions of a namespace that still have their transcripts."""
    query = "SELECT job_id FROM extractions WHERE namespace = ? AND transcript IS NOT NULL ORDER BY job_id"
    return list(select(connection, str, query, (namespace,)))


def blank_transcripts(connection: Connection, job_ids: Sequence[str]) -> None:
    """Blank transcripts; one that a job still needs is blanked when the job has read it, and shown no more."""
    chosen = (to_json(list(job_ids)),)
    of_these = "job_id IN (SELECT atom FROM json_each(?))"
    connection.execute(
        f"UPDATE extractions SET options = json_set(options, '$.{FORGOTTEN}', json('true')) "
        f"WHERE {of_these} AND transcript IS NOT NULL",
        chosen,
    )
    connection.execute(
        f"UPDATE extractions SET transcript = NULL WHERE {of_these} "
        f"AND (phase IN {_TRANSCRIPT_UNUSED} OR job_id NOT IN {_UNFINISHED})",
        chosen,
    )


def _same_facts(connection: Connection, facts: Iterable[tuple[str, int]]) -> set[tuple[str, int]]:
    """Return the facts that these were taken from, and what other runs over the transcript found and did not apply."""
    named = to_json(sorted(facts))
    taken = select(
        connection,
        tuple[str, int],
        "SELECT t.value ->> 0, CAST(t.value ->> 1 AS BIGINT) FROM json_each(?) f "
        "JOIN extractions e ON e.job_id = f.value ->> 0 "
        f"JOIN json_each(e.options, '$.{TAKEN}') t ON t.key = CAST(f.value ->> 1 AS TEXT)",
        (named,),
    )
    origins = set(taken)
    run = f"coalesce(e.options ->> '$.{RERUN_OF}', e.job_id)"
    begin, end = (f"CAST(p.proposal ->> '$.span[{number}]' AS BIGINT)" for number in (0, 1))
    spans = (
        f"SELECT e.job_id, e.namespace, {run} AS run, "
        f"{begin} AS span_start, {end} AS span_end FROM json_each(?) f "
        "JOIN extraction_facts p ON p.job_id = f.value ->> 0 AND p.ordinal = CAST(f.value ->> 1 AS BIGINT) "
        "JOIN extractions e ON e.job_id = p.job_id"
    )
    overlapping = select(
        connection,
        tuple[str, int],
        f"WITH s AS MATERIALIZED ({spans}) SELECT p.job_id, p.ordinal FROM s JOIN extractions e "
        f"ON e.namespace = s.namespace AND {run} = s.run AND e.job_id <> s.job_id "
        "JOIN extraction_facts p ON p.job_id = e.job_id AND p.stage <> 'applied' "
        f"WHERE {begin} < s.span_end AND s.span_start < {end}",
        (to_json(sorted({*facts, *origins})),),
    )
    return origins | set(overlapping)


def forget_transcripts(connection: Connection, namespace: str) -> None:
    """Blank every transcript and ledger of a namespace, and cancel its unfinished extractions."""
    _forget(connection, "SELECT job_id FROM extractions WHERE namespace = ?", namespace)


def learning_with(connection: Connection, namespace: str, party: Party, name: str) -> list[str]:
    """Return the ids of extractions of conversations with a user or session, who need not be stored yet."""
    query = (
        "SELECT job_id FROM extractions WHERE namespace = ? "
        f"AND EXISTS (SELECT 1 FROM json_each(options, '$.{LEARNED_WITH}.{party.value}') WHERE atom = ?)"
    )
    return list(select(connection, str, query, (namespace, name)))


def forget_learned_with(connection: Connection, namespace: str, party: Party, name: str) -> int:
    """Blank transcripts and ledgers of conversations with a user or session, and cancel unfinished ones.

    :return: The number of these extractions.
    """
    job_ids = learning_with(connection, namespace, party, name)
    forget_jobs(connection, job_ids)
    return len(job_ids)


def _forget(connection: Connection, query: str, *parameters: str) -> None:
    forget_jobs(connection, list(select(connection, str, query, parameters)))


def forget_jobs(connection: Connection, job_ids: Sequence[str]) -> None:
    """Blank the transcripts and ledgers of extractions, and cancel unfinished ones."""
    chosen = to_json(list(job_ids))
    of_these = "IN (SELECT atom FROM json_each(?))"
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
