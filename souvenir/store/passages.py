"""Every statement that changes passages: the embedded and searched texts of memories, messages and concepts.

A passage is immutable. Index changes are collected together with the row changes, for the current model and for one
that is about to replace it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from souvenir.core.passages import (
    Embeddable,
    Embedding,
    IndexChange,
    OwnerChanged,
    Passage,
    PassageAdded,
    PassageOwner,
    PassageRemoved,
    PreparedPassage,
    searched_text,
)
from souvenir.core.timestamps import to_us
from souvenir.core.types import PassageKind
from souvenir.store.rows import as_text, ids_parameter, select
from souvenir.store.sql import Connection


class ModelChanged(Exception):
    """Raised if the texts of a write were embedded by a model that has been replaced since; nothing was written."""

    def __init__(self, passages: Sequence[Embeddable]) -> None:
        super().__init__(f"{len(passages)} passages have no vector of the present model")
        self.passages = passages


@dataclass(frozen=True, slots=True)
class VectorModels:
    """The models whose vectors are stored.

    :param again: Embeddings of passages that were prepared with another model, by model id and embedded text.
    """

    present: str
    following: str | None
    again: Mapping[tuple[str, Embeddable], Embedding]


@dataclass(slots=True)
class PassageWriter:
    """The passages of one transaction in one namespace, for every kind of owner."""

    connection: Connection
    namespace_id: int
    models: VectorModels
    changes: list[IndexChange] = field(default_factory=list)
    next_changes: list[IndexChange] = field(default_factory=list)
    unembedded: list[Embeddable] = field(default_factory=list)

    def require_embedded(self) -> None:
        """:raises ModelChanged: If vectors of the current model are missing."""
        if self.unembedded:
            raise ModelChanged(self.unembedded)

    def insert(self, owner: PassageOwner, prepared: Sequence[PreparedPassage], *, fact_id: int | None = None) -> None:
        """Store the passages of an owner's text, or of a fact, that has none yet."""
        self._insert_embeddings(self._inserted(owner, prepared, fact_id))

    def insert_all(self, owners: Iterable[tuple[PassageOwner, Sequence[PreparedPassage]]]) -> None:
        """`insert` the passages of many texts, with fewer statements."""
        self._insert_embeddings([one for owner, prepared in owners for one in self._inserted(owner, prepared, None)])

    def _inserted(
        self, owner: PassageOwner, prepared: Sequence[PreparedPassage], fact_id: int | None
    ) -> Sequence[_InsertedPassage]:
        """Store passages without their embeddings."""
        inserted: list[_InsertedPassage] = []
        # Ordinals of a text count from 0, those of facts from -1 downwards.
        ordinals = count() if fact_id is None else count(self._least_ordinal(owner) - 1, -1)
        for ordinal, one in zip(ordinals, prepared, strict=False):
            embedding = self._embedding_of(one)
            if embedding is None:
                self.unembedded.append(one.embeddable)
                continue
            passage = Passage(
                id=self._insert_row(owner, ordinal, one, fact_id),
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
                fact_id=fact_id,
            )
            inserted.append(_InsertedPassage(passage, embedding, one))
        return inserted

    def delete(self, kind: PassageKind, owner_ids: Sequence[int]) -> int:
        """Delete the passages of these owners; return how many there were."""
        removed = remove_passages(self.connection, kind, owner_ids)
        self.tell([PassageRemoved(passage_id, kind) for passage_id, _ in removed])
        return len(removed)

    def delete_parts(self, kind: PassageKind, owner_id: int, fact_ids: Sequence[int], *, text: bool) -> None:
        """Delete the passages of some of an owner's facts, and of its text if `text` is set."""
        removed = remove_passages(self.connection, kind, [owner_id], Parts(fact_ids, text))
        self.tell([PassageRemoved(passage_id, kind) for passage_id, _ in removed])

    def move(self, owner: PassageOwner) -> None:
        """Copy the owner's current source, time and archived flag to its passages."""
        self.connection.execute(
            "UPDATE passages SET source = ?, occurred_at = ?, archived = ?, dated = ? WHERE kind = ? AND owner_id = ?",
            (owner.source, to_us(owner.occurred_at), owner.archived, owner.dated, owner.kind.value, owner.id),
        )
        self.tell([OwnerChanged(owner.kind, owner.id, owner.source, owner.occurred_at, owner.archived, owner.dated)])

    def _least_ordinal(self, owner: PassageOwner) -> int:
        least = self.connection.execute(
            "SELECT min(ordinal) FROM passages WHERE kind = ? AND owner_id = ?", (owner.kind.value, owner.id)
        ).get
        return min(0, int(least or 0))

    def _insert_row(self, owner: PassageOwner, ordinal: int, one: PreparedPassage, fact_id: int | None) -> int:
        turn = owner.turn
        of_turn: tuple[Any, ...] = (None,) * 5
        if turn is not None:
            of_turn = (turn.session_id, turn.position, turn.role.value, turn.user_id, turn.speaker)
        passage_id = self.connection.execute(
            "INSERT INTO passages (namespace_id, kind, owner_id, ordinal, text, profile, source, occurred_at, "
            "archived, dated, session_id, position, role, user_id, speaker, fact_id) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
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
                fact_id,
            ),
        ).get
        return int(passage_id)

    def _embedding_of(self, prepared: PreparedPassage) -> Embedding | None:
        embedding = prepared.embedding_by(self.models.present)
        return self.models.again.get((self.models.present, prepared.embeddable)) if embedding is None else embedding

    def _insert_embeddings(self, inserted: Sequence[_InsertedPassage]) -> None:
        """Store the embeddings of the current model, and of the next one where it has embedded the text already."""
        insert_embeddings(self.connection, self.models.present, {one.passage.id: one.embedding for one in inserted})
        self.changes += [PassageAdded(one.passage, one.embedding, one.prepared.chunks) for one in inserted]
        following = self.models.following
        if following is None:
            return
        embedded = [(one, one.prepared.embedding_by(following)) for one in inserted]
        of_next = [(one, embedding) for one, embedding in embedded if embedding is not None]
        insert_embeddings(self.connection, following, {one.passage.id: embedding for one, embedding in of_next})
        self.next_changes += [PassageAdded(one.passage, embedding, one.prepared.chunks) for one, embedding in of_next]

    def tell(self, changes: Sequence[IndexChange]) -> None:
        """Record changes for the indexes of both models."""
        self.changes += changes
        self.next_changes += changes


class _InsertedPassage(NamedTuple):
    passage: Passage
    embedding: Embedding
    prepared: PreparedPassage


class Parts(NamedTuple):
    """Parts of an owner: some of its facts, and its text if `text` is set."""

    fact_ids: Sequence[int]
    text: bool


def remove_passages(
    connection: Connection, kind: PassageKind, owner_ids: Sequence[int], parts: Parts | None = None
) -> Sequence[tuple[int, str]]:
    """Delete all or some passages of these owners with their vectors; return their ids and searched texts."""
    chosen, parameters = "", [kind.value, ids_parameter(owner_ids)]
    if parts is not None:
        chosen = f"AND ({'fact_id IS NULL OR ' if parts.text else ''}fact_id IN (SELECT value FROM json_each(?))) "
        parameters.append(ids_parameter(parts.fact_ids))
    rows = list(
        select(
            connection,
            tuple[int, bytes, bytes | None],
            f"DELETE FROM passages WHERE kind = ? AND owner_id IN (SELECT value FROM json_each(?)) {chosen}"
            "RETURNING id, CAST(text AS BLOB), CAST(speaker AS BLOB)",
            parameters,
        )
    )
    return [
        (passage_id, searched_text(as_text(text), None if speaker is None else as_text(speaker)))
        for passage_id, text, speaker in rows
    ]


def insert_embeddings(connection: Connection, model_id: str, embeddings: Mapping[int, Embedding]) -> None:
    """Store embeddings by passage id; passages that were deleted meanwhile are skipped."""
    if not embeddings:
        return
    connection.executemany(
        "INSERT INTO vectors (passage_id, model_id, vector, tokens) SELECT id, ?, ?, ? FROM passages "
        "WHERE id = ? ON CONFLICT DO NOTHING",
        [
            (
                model_id,
                vector.astype(np.float32, copy=False).tobytes(),
                None if tokens is None else tokens.to_bytes(),
                passage_id,
            )
            for passage_id, (vector, tokens) in embeddings.items()
        ],
    )
