"""Every statement about claims: what a caller or a language model says of concepts, beside what is read.

A claim of a model names the message that it rests on and the job that made it. One of kind `alias` says that its
concept is another name of the other one; where there is no other one, that it is called `text` too. Each function takes
a connection inside a transaction; whoever is said to be another name is matched again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import apsw

from souvenir.moments import from_us, to_us
from souvenir.store import mentions
from souvenir.store.rows import ids_parameter
from souvenir.types import ClaimedBy, ClaimKind


@dataclass(frozen=True, slots=True)
class ClaimDraft:
    """:param text: A name, a description, a kind, or the type of a relation in snake_case.

    :param other_id: To whom a relation leads, or whose other name the concept is.
    """

    kind: ClaimKind
    concept_id: int
    text: str
    made_by: ClaimedBy
    other_id: int | None = None
    confidence: float = 1.0
    message_id: int | None = None
    job_id: str | None = None


@dataclass(frozen=True, slots=True)
class Claim:
    """:param message: The id, as callers know it, of the message that it rests on."""

    id: int
    kind: ClaimKind
    concept_id: int
    other_id: int | None
    text: str
    confidence: float
    made_by: ClaimedBy
    message: str | None
    job_id: str | None
    created_at: datetime


_SELECT = (
    "SELECT c.id, c.kind, c.concept_id, c.other_id, c.text, c.confidence, c.made_by, m.uid, c.job_id, c.created_at "
    "FROM claims c LEFT JOIN messages m ON m.id = c.message_id"
)


def insert(connection: apsw.Connection, namespace_id: int, draft: ClaimDraft, now: datetime) -> Claim:
    """The concepts must be of the namespace."""
    row = connection.execute(
        "INSERT INTO claims (namespace_id, kind, concept_id, other_id, text, confidence, made_by, message_id, job_id, "
        "created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
        (
            namespace_id,
            draft.kind.value,
            draft.concept_id,
            draft.other_id,
            draft.text,
            draft.confidence,
            draft.made_by.value,
            draft.message_id,
            draft.job_id,
            to_us(now),
        ),
    ).get
    if draft.kind is ClaimKind.ALIAS:
        mentions.unmatch(connection, [draft.concept_id])
    [claim] = _claims(connection, "c.id = ?", row)
    return claim


def of_concepts(connection: apsw.Connection, concept_ids: Iterable[int]) -> list[Claim]:
    """What is said of these concepts, of whatever kind; oldest first."""
    return _claims(connection, "c.concept_id IN (SELECT value FROM json_each(?))", ids_parameter(concept_ids))


def aliases_of(connection: apsw.Connection, concept_ids: Iterable[int]) -> list[Claim]:
    """Which concepts are said to be these, oldest first."""
    chosen = ids_parameter(concept_ids)
    return _claims(connection, "c.other_id IN (SELECT value FROM json_each(?)) AND c.kind = 'alias'", chosen)


def relations(connection: apsw.Connection, concept_ids: Iterable[int]) -> list[Claim]:
    """The relations that lead from one of these concepts or to one, oldest first."""
    chosen = ids_parameter(concept_ids)
    return _claims(
        connection,
        "c.id IN (SELECT id FROM claims WHERE concept_id IN (SELECT value FROM json_each(?)) AND kind = 'relation' "
        "UNION SELECT id FROM claims WHERE other_id IN (SELECT value FROM json_each(?)) AND kind = 'relation')",
        chosen,
        chosen,
    )


def of_job(connection: apsw.Connection, namespace_id: int, job_id: str) -> list[Claim]:
    """What a job claimed, as far as it still stands; oldest first."""
    return _claims(connection, "c.job_id = ? AND c.namespace_id = ?", job_id, namespace_id)


def of_namespace(connection: apsw.Connection, namespace_id: int) -> list[Claim]:
    return _claims(connection, "c.namespace_id = ?", namespace_id)


def delete(connection: apsw.Connection, claim_ids: Iterable[int]) -> int:
    """How many there were."""
    rows: list[Any] = connection.execute(
        "DELETE FROM claims WHERE id IN (SELECT value FROM json_each(?)) RETURNING concept_id, kind",
        (ids_parameter(claim_ids),),
    ).fetchall()
    mentions.unmatch(connection, {concept_id for concept_id, kind in rows if kind == ClaimKind.ALIAS})
    return len(rows)


def _claims(connection: apsw.Connection, where: str, *parameters: Any) -> list[Claim]:
    rows: Any = connection.execute(f"{_SELECT} WHERE {where} ORDER BY c.id", parameters)
    return [_claim_of(row) for row in rows]


def _claim_of(row: tuple[Any, ...]) -> Claim:
    id_, kind, concept_id, other_id, text, confidence, made_by, message, job_id, created_at = row
    return Claim(
        id=id_,
        kind=ClaimKind(kind),
        concept_id=concept_id,
        other_id=other_id,
        text=text,
        confidence=confidence,
        made_by=ClaimedBy(made_by),
        message=message,
        job_id=job_id,
        created_at=from_us(created_at),
    )
