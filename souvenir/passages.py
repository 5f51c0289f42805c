"""What is embedded and searched, whatever noun it is of, and what a write means to the indexes.

Values without behaviour, known to store, indexes and engine; the nouns' own values are in `souvenir.types`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from souvenir.types import FloatVector, MessageRole, PassageKind, Profile


@dataclass(frozen=True, slots=True)
class Turn:
    """Where in which conversation something was said, and by whom.

    :param position: Ascends within the session in the order of storing; gaps are messages that are gone.
    :param user_id: The user whom the agent talks with, if the caller named one.
    :param speaker: A name, if the caller gave one; it is searched with the text.
    """

    session_id: int
    position: int
    role: MessageRole
    user_id: int | None = None
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class PassageOwner:
    """What a noun lends to its passages: everything that filters read. `turn` is a message's."""

    kind: PassageKind
    id: int
    source: str
    occurred_at: datetime
    archived: bool
    turn: Turn | None = None


def searched_text(text: str, speaker: str | None) -> str:
    """What is embedded and analysed of a passage."""
    return text if speaker is None else f"{speaker}: {text}"


@dataclass(frozen=True, slots=True)
class Passage:
    """What is embedded and searched: a text that fits in the model's window, with what filters read."""

    id: int
    kind: PassageKind
    owner_id: int
    ordinal: int
    text: str
    profile: Profile
    source: str
    occurred_at: datetime
    archived: bool
    turn: Turn | None = None

    @property
    def searched_text(self) -> str:
        return searched_text(self.text, None if self.turn is None else self.turn.speaker)


class PassageRow(NamedTuple):
    """What filters read of a passage, as an index holds it; `session_id` and `user_id` are 0 where there is none."""

    id: int
    owner_id: int
    profile: int
    source: str
    occurred_us: int
    archived: bool
    session_id: int = 0
    position: int = 0
    role: MessageRole | None = None
    user_id: int = 0


@dataclass(frozen=True, slots=True)
class PreparedPassage:
    """A passage that has no id yet: analysed and embedded, outside of every lock.

    :param model_id: Of the model that made `vector`.
    :param next_vector: The id and the vector of a model that is about to take over.
    :param speaker: Who says it, where that is searched too.
    """

    text: str
    profile: Profile
    vector: FloatVector
    terms: Sequence[str]
    model_id: str
    next_vector: tuple[str, FloatVector] | None = None
    speaker: str | None = None

    @property
    def searched_text(self) -> str:
        return searched_text(self.text, self.speaker)

    def vector_by(self, model_id: str) -> FloatVector | None:
        """The vector that this model made, if it made one."""
        if model_id == self.model_id:
            return self.vector
        if self.next_vector is not None and self.next_vector[0] == model_id:
            return self.next_vector[1]
        return None


@dataclass(frozen=True, slots=True)
class PassageAdded:
    passage: Passage
    vector: FloatVector
    terms: Sequence[str]


@dataclass(frozen=True, slots=True)
class PassageRemoved:
    passage_id: int
    kind: PassageKind


@dataclass(frozen=True, slots=True)
class OwnerChanged:
    """What filters read of a noun changed; its passages did not."""

    kind: PassageKind
    owner_id: int
    source: str
    occurred_at: datetime
    archived: bool


IndexChange = PassageAdded | PassageRemoved | OwnerChanged
"""What a committed transaction means to its namespace's indexes. Passages are never changed, only added and removed."""
