"""Rows of extractions: the transcript of a job, its ledger of facts, and the provenance of memories.

Each function takes a connection inside a transaction. Transcript and ledger are deleted with the job's row in `jobs`.

Provenance is the users and sessions that a memory was learned with, by the callers' names. Only jobs write it. It is
stored next to the metadata, so no caller changes it and no privacy rule redacts it. A memory that replaces others
inherits it; it is deleted with its memory.
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
    """Whom or what a memory can be learned with."""

    USER = "user"
    SESSION = "session"


LearnedWith = Mapping[str, Sequence[str]]
"""Names by party, as JSON holds it."""


def with_whom(connection: apsw.Connection, namespace: str, user: str | None, session: str | None) -> LearnedWith:
    """A conversation's user and session; who is not named is whom the session is with."""
    if user is None and session is not None:
        row = first(connection, int, "SELECT id FROM namespaces WHERE name = ?", (namespace,))
        found = None if row is None else sessions.find(connection, row, session)
        user = None if found is None else found.user
    named = {Party.USER.value: user, Party.SESSION.value: session}
    return {party: [name] for party, name in named.items() if name is not None}


def together(several: Iterable[LearnedWith]) -> LearnedWith:
    """What is learned from all of these at once."""
    names: dict[str, dict[str, None]] = {}
    for one in several:
        for party, of_party in one.items():
            names.setdefault(party, {}).update(dict.fromkeys(of_party))
    return {party: list(of_party) for party, of_party in names.items()}


def note(connection: apsw.Connection, memory_id: int, learned_with: LearnedWith) -> None:
    """Add to what is known of a memory."""
    connection.executemany(
        "INSERT OR IGNORE INTO learned_with (kind, name, memory_id) VALUES (?, ?, ?)",
        [(party, name, memory_id) for party, names in learned_with.items() for name in names],
    )


def carry(connection: apsw.Connection, memory_ids: Iterable[int], new_id: int) -> None:
    """Let a memory that takes the place of others have what is known of them."""
    connection.execute(
        "INSERT OR IGNORE INTO learned_with (kind, name, memory_id) "
        "SELECT kind, name, ? FROM learned_with WHERE memory_id IN (SELECT value FROM json_each(?))",
        (new_id, ids_parameter(memory_ids)),
    )


def memories_of(connection: apsw.Connection, namespace_id: int, party: Party, name: str) -> list[int]:
    """Those that were learned with somebody, archived ones too; the database may be of an older schema."""
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
"""The key of an extraction's options that says whom it was learned with."""


@dataclass(frozen=True, slots=True)
class ExtractionRecord:
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
    """Write these rows of the ledger, new ones and those that stand there already."""
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
    """The version of each of the memories that is there and may be seen: the id of its last row in the history.

    Facts are no part of it: a memory that was split again says what it said.
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
    """Those of the ids that no memory of any namespace has: it was deleted, since ids are never used again."""
    return set(
        select(
            connection,
            int,
            "SELECT value FROM json_each(?) WHERE value NOT IN (SELECT id FROM memories)",
            (ids_parameter(memory_ids),),
        )
    )


def forget_memories(connection: apsw.Connection, memory_ids: Iterable[int]) -> None:
    """Blank what ledgers say of memories that are forgotten, and the transcripts that those were learned from."""
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
