"""Subjects of conversations: concepts that share a word of their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from souvenir.core.types import ConceptKind
from souvenir.knowledge.recognition.definitions import is_relation
from souvenir.store.graph.activity import MentioningSession
from souvenir.store.graph.concepts import Concept

GROUPS = frozenset((ConceptKind.ORGANISATION, ConceptKind.EVENT))
"""Kinds of concepts that can go quiet; a person can if related to the author."""


class Subject(NamedTuple):
    """Concepts that share a word, with the sessions that mention them, newest first."""

    name: str
    is_name: bool
    concept_ids: tuple[int, ...]
    sessions: Sequence[MentioningSession]

    @classmethod
    def of(cls, word: str, of_word: Sequence[Concept], sessions: Sequence[MentioningSession]) -> Subject:
        """Name it by its concept of this name, else by the word."""
        own = next((one for one in of_word if one.key == word), of_word[0] if len(of_word) == 1 else None)
        role = "" if own is None else own.role or ""
        name = f"“{word if own is None else own.name}”"
        if own is not None and is_relation(role):
            name = f"{own.name} ({role})"
        is_name = is_relation(role) or any(one.kind in GROUPS for one in of_word)
        return cls(name, is_name, tuple(one.id for one in of_word), sessions)
