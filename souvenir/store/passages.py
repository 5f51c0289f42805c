"""Every statement that changes passages: what is embedded and searched of a noun, with its vectors.

A passage is never changed. What the indexes must be told is gathered beside the rows, for the present model and for one
that is about to take over.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import apsw

from souvenir.moments import to_us
from souvenir.passages import (
    Embeddable,
    IndexChange,
    OwnerChanged,
    Passage,
    PassageAdded,
    PassageOwner,
    PassageRemoved,
    PreparedPassage,
    searched_text,
)
from souvenir.store import vectors
from souvenir.store.rows import ids_parameter
from souvenir.types import FloatVector, PassageKind


class ModelChanged(Exception):
    """Texts of the write were embedded by a model that has been replaced since; nothing was written."""

    def __init__(self, passages: Sequence[Embeddable]) -> None:
        super().__init__(f"{len(passages)} passages have no vector of the present model")
        self.passages = passages


@dataclass(frozen=True, slots=True)
class VectorModels:
    """The models whose vectors are stored.

    :param again: Vectors of what was prepared with another model, by the id of theirs and what they are made of.
    """

    present: str
    following: str | None
    again: Mapping[tuple[str, Embeddable], FloatVector]


@dataclass(slots=True)
class PassageWriter:
    """The passages of one transaction in one namespace, whatever noun owns them."""

    connection: apsw.Connection
    namespace_id: int
    models: VectorModels
    changes: list[IndexChange] = field(default_factory=list)
    next_changes: list[IndexChange] = field(default_factory=list)
    unembedded: list[Embeddable] = field(default_factory=list)

    def require_embedded(self) -> None:
        """:raises ModelChanged: If vectors of the present model are missing."""
        if self.unembedded:
            raise ModelChanged(self.unembedded)

    def insert(self, owner: PassageOwner, prepared: Sequence[PreparedPassage]) -> None:
        """Store the passages of an owner that has none."""
        for ordinal, one in enumerate(prepared):
            vector = self._vector_of(one)
            if vector is None:
                self.unembedded.append(one.embeddable)
                continue
            passage = Passage(
                id=self._insert_row(owner, ordinal, one),
                kind=owner.kind,
                owner_id=owner.id,
                ordinal=ordinal,
                text=one.text,
                profile=one.profile,
                source=owner.source,
                occurred_at=owner.occurred_at,
                archived=owner.archived,
                dated=owner.dated,
                turn=owner.turn,
            )
            self._insert_vectors(passage, vector, one)

    def delete(self, kind: PassageKind, owner_ids: Sequence[int]) -> int:
        """Remove what these owners have; returns how many passages that were."""
        removed = remove_passages(self.connection, kind, owner_ids)
        self.tell([PassageRemoved(passage_id, kind) for passage_id, _ in removed])
        return len(removed)

    def move(self, owner: PassageOwner) -> None:
        """Let the passages say what their owner says now of source, time and archive."""
        self.connection.execute(
            "UPDATE passages SET source = ?, occurred_at = ?, archived = ?, dated = ? WHERE kind = ? AND owner_id = ?",
            (owner.source, to_us(owner.occurred_at), owner.archived, owner.dated, owner.kind.value, owner.id),
        )
        self.tell([OwnerChanged(owner.kind, owner.id, owner.source, owner.occurred_at, owner.archived, owner.dated)])

    def _insert_row(self, owner: PassageOwner, ordinal: int, one: PreparedPassage) -> int:
        turn = owner.turn
        of_turn: tuple[Any, ...] = (None,) * 5
        if turn is not None:
            of_turn = (turn.session_id, turn.position, turn.role.value, turn.user_id, turn.speaker)
        passage_id = self.connection.execute(
            "INSERT INTO passages (namespace_id, kind, owner_id, ordinal, text, profile, source, occurred_at, "
            "archived, dated, session_id, position, role, user_id, speaker) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
            (
                self.namespace_id,
                owner.kind.value,
                owner.id,
                ordinal,
                one.text,
                one.profile.value,
                owner.source,
                to_us(owner.occurred_at),
                owner.archived,
                owner.dated,
                *of_turn,
            ),
        ).get
        return int(passage_id)

    def _vector_of(self, prepared: PreparedPassage) -> FloatVector | None:
        vector = prepared.vector_by(self.models.present)
        return self.models.again.get((self.models.present, prepared.embeddable)) if vector is None else vector

    def _insert_vectors(self, passage: Passage, vector: FloatVector, prepared: PreparedPassage) -> None:
        """Of the present model, and of the next one if it has embedded the text already."""
        vectors.add(self.connection, self.models.present, {passage.id: vector})
        self.changes.append(PassageAdded(passage, vector, prepared.chunks))
        following = self.models.following
        next_vector = None if following is None else prepared.vector_by(following)
        if following is not None and next_vector is not None:
            vectors.add(self.connection, following, {passage.id: next_vector})
            self.next_changes.append(PassageAdded(passage, next_vector, prepared.chunks))

    def tell(self, changes: Sequence[IndexChange]) -> None:
        """Let the indexes of both models know."""
        self.changes += changes
        self.next_changes += changes


def remove_passages(
    connection: apsw.Connection, kind: PassageKind, owner_ids: Sequence[int]
) -> Sequence[tuple[int, str]]:
    """Remove what these owners have, with its vectors: ids, and what was searched."""
    rows: list[Any] = connection.execute(
        "DELETE FROM passages WHERE kind = ? AND owner_id IN (SELECT value FROM json_each(?)) "
        "RETURNING id, text, speaker",
        (kind.value, ids_parameter(owner_ids)),
    ).fetchall()
    return [(passage_id, searched_text(text, speaker)) for passage_id, text, speaker in rows]
