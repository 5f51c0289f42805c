"""Interfaces of the indexes to the database and the analyser, and the comparison of ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from typing import Protocol

from souvenir.core.passages import Chunks, CommitId, Embedding, OwnerChanged, Passage
from souvenir.index.cross_check import Stored
from souvenir.index.namespace import NamespaceIndex


class PassageView(Stored, Protocol):
    """One snapshot of a namespace's passages of one kind in the database."""

    @property
    def namespace(self) -> str:
        """The name of the namespace."""

    @property
    def change_seq(self) -> int:
        """The number of the last write to the namespace."""

    def includes(self, commit: CommitId) -> bool:
        """Return whether the history of the database contains a commit."""

    def ids_summary(self) -> tuple[int, int]:
        """Return the number and the sum of the ids of the passages."""

    def ids(self) -> Set[int]:
        """Return the ids of the passages."""

    def changes_since(self, change_seq: int) -> Touched | None:
        """Return what the writes after a number touched; None if the log does not reach back to it."""

    def passages_of(self, owner_ids: Iterable[int]) -> Iterable[tuple[Passage, Embedding]]:
        """Return the passages of these owners that the model has embedded, in id order."""

    def owners(self, owner_ids: Iterable[int]) -> Iterable[OwnerChanged]:
        """Return the present filter attributes of these owners, as far as they have passages."""


class Touched(Protocol):
    """Ids of passages that were added, removed or got token vectors, and of owners with other filter attributes."""

    @property
    def passage_ids(self) -> Set[int]: ...

    @property
    def owner_ids(self) -> Set[int]: ...


class Analyse(Protocol):
    """The analyser as the indexes use it."""

    def terms(self, text: str) -> Sequence[str]:
        """Return the terms of a separate text, such as a name."""

    def chunks(self, passage: Passage) -> Chunks:
        """Return the terms of the searched text of a passage, chunk by chunk."""


def differing_ids(index: NamespaceIndex, view: PassageView) -> tuple[Set[int], Set[int]]:
    """Return the ids that an index lacks, such as those of passages without a readable embedding, and the surplus."""
    if index.attributes.has_ids(*view.ids_summary()):
        return frozenset(), frozenset()
    held, stored = set(index.attributes.ids.tolist()), view.ids()
    return stored - held, held - stored
