"""What is embedded and searched, whatever noun it is of, and what a write means to the indexes.

Values without behaviour, known to store, indexes and engine; the nouns' own values are in `souvenir.core.types`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import Enum, IntFlag
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from souvenir.core.types import FloatVector, MessageRole, PassageKind, Profile

Chunks = Sequence[Sequence[str]]
"""The analyser's terms of a passage, chunk by chunk: what BM25 weighs is a chunk, what is found is its passage."""


class SpokenBy(NamedTuple):
    """Who says a message: a role, and a name if the caller gave one."""

    role: MessageRole
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class Utterance:
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
    """What a noun lends to its passages: everything that filters read. `turn` is a message's.

    :param dated: Whether a caller said when it occurred; memories of one source and one such time belong together.
    """

    kind: PassageKind
    id: int
    source: str
    occurred_at: datetime
    archived: bool
    dated: bool = False
    turn: Utterance | None = None


def searched_text(text: str, speaker: str | None) -> str:
    """What is analysed of a passage, and embedded unless it is too long."""
    return text if speaker is None else f"{speaker}: {text}"


class EmbeddedPart(Enum):
    """How much of a text that is longer than the model's window makes its vector (`souvenir.retrieval.preparation`)."""

    ALL = "all"
    FIRST_WINDOW = "first window"
    HEAD = "head"


class Embeddable(NamedTuple):
    """What a vector is made of."""

    text: str
    part: EmbeddedPart


def embeddable(text: str, profile: Profile, spoken_by: SpokenBy | None) -> Embeddable:
    """A message is found by what it begins with, and an assistant's answer, which is long, by less of that.

    docs/retrieval.md has what was measured.
    """
    if spoken_by is None:
        return Embeddable(text, EmbeddedPart.ALL)
    answers = profile is Profile.CHAT and spoken_by.role is MessageRole.ASSISTANT
    part = EmbeddedPart.HEAD if answers else EmbeddedPart.FIRST_WINDOW
    return Embeddable(searched_text(text, spoken_by.speaker), part)


@dataclass(frozen=True, slots=True)
class Passage:
    """What is embedded and searched: a text that fits in the model's window, with what filters read.

    :param fact_id: The fact of a memory that it is of; None: it is of the memory's own text.
    """

    id: int
    kind: PassageKind
    owner_id: int
    ordinal: int
    text: str
    profile: Profile
    source: str
    occurred_at: datetime
    archived: bool
    dated: bool = False
    turn: Utterance | None = None
    fact_id: int | None = None

    @property
    def searched_text(self) -> str:
        return searched_text(self.text, None if self.turn is None else self.turn.speaker)

    @property
    def embeddable(self) -> Embeddable:
        turn = self.turn
        return embeddable(self.text, self.profile, None if turn is None else SpokenBy(turn.role, turn.speaker))


class PassageRow(NamedTuple):
    """What filters and scores read of a passage, as an index holds it; ids and `flags` are 0 where there is none."""

    id: int
    owner_id: int
    profile: int
    source: str
    occurred_us: int
    archived: bool
    dated: bool = False
    session_id: int = 0
    position: int = 0
    role: MessageRole | None = None
    user_id: int = 0
    speaker: str = ""
    flags: int = 0
    fact_id: int = 0


class TurnFlag(IntFlag):
    """What a message's text looks like."""

    QUESTION = 1
    TIME = 2
    NUMBER = 4
    NAME = 8


@dataclass(frozen=True, slots=True)
class PassageColumns:
    """What scores read of an index's n passages; arrays of shape (n,).

    :param profiles: `Profile` values. :param only_profile: That of all passages, if they have one.
    :param flags: `TurnFlag` values. :param lengths: Terms of each.
    :param by_user: Which were said by the user. :param with_assistant: Whether an assistant said any.
    :param by_named: Which were said by the one speaker whom the question names; None if it names none or several.
    """

    profiles: NDArray[np.uint8]
    only_profile: Profile | None
    occurred_us: NDArray[np.int64]
    flags: NDArray[np.uint8]
    lengths: NDArray[np.uint32]
    by_user: NDArray[np.bool_]
    with_assistant: bool
    by_named: NDArray[np.bool_] | None


FieldScores = Mapping[str, NDArray[np.float32]]
"""Terms of a score in addition to those of the two arms, by name, each of shape (n,)."""


@dataclass(frozen=True, slots=True)
class PreparedPassage:
    """A passage that has no id yet: analysed and embedded, outside of every lock.

    :param model_id: Of the model that made `vector`.
    :param next_vector: The id and the vector of a model that is about to take over.
    :param spoken_by: Of a message. :param fact: The whole fact, of a fact's.
    """

    text: str
    profile: Profile
    vector: FloatVector
    chunks: Chunks
    model_id: str
    next_vector: tuple[str, FloatVector] | None = None
    spoken_by: SpokenBy | None = None
    fact: str | None = None

    @property
    def embeddable(self) -> Embeddable:
        return embeddable(self.text, self.profile, self.spoken_by)

    def vector_by(self, model_id: str) -> FloatVector | None:
        """The vector that this model made, if it made one."""
        if model_id == self.model_id:
            return self.vector
        if self.next_vector is not None and self.next_vector[0] == model_id:
            return self.next_vector[1]
        return None


@dataclass(frozen=True, slots=True)
class FormerText:
    """What an owner said at a moment that is over, where its passages say something else now."""

    owner: PassageOwner
    passages: Sequence[PreparedPassage]


@dataclass(frozen=True, slots=True)
class PastPassages:
    """What of one kind stood at a moment: the ids of the owners that say the same now, and the others as they were."""

    unchanged: Sequence[int]
    former: Sequence[FormerText]


@dataclass(frozen=True, slots=True)
class PassageAdded:
    passage: Passage
    vector: FloatVector
    chunks: Chunks


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
    dated: bool


IndexChange = PassageAdded | PassageRemoved | OwnerChanged
"""What a committed transaction means to its namespace's indexes. Passages are never changed, only added and removed."""
