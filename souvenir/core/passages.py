"""Passages, the embedded and searched units of all kinds of records, and the index changes of a write.

Values without behaviour, known to store, indexes and engine; the records' own values are in `souvenir.core.types`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, IntFlag
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from souvenir.core.types import FloatVector, MessageRole, PassageKind, Profile

Chunks = Sequence[Sequence[str]]
"""The analyser's terms of a passage, chunk by chunk: BM25 scores chunks, and search returns passages."""


LATE_PROFILES = frozenset({Profile.FACT, Profile.TALK})
"""Profiles whose passages have token vectors, by which the best of them are scored again."""


class SpokenBy(NamedTuple):
    """The speaker of a message: a role, and a name if the caller gave one."""

    role: MessageRole
    speaker: str | None = None


class CommitId(NamedTuple):
    """A commit of the store: a run of the writer, by a random id, and the number of the commit in the whole history."""

    generation: str
    number: int


@dataclass(frozen=True, slots=True)
class Utterance:
    """The place of a message in its conversation, and its speaker.

    :param position: Ascends within the session in insertion order; gaps are deleted messages.
    :param user_id: The user with whom the agent talks, if the caller named one.
    :param speaker: A name, if the caller gave one; it is searched together with the text.
    """

    session_id: int
    position: int
    role: MessageRole
    user_id: int | None = None
    speaker: str | None = None


@dataclass(frozen=True, slots=True)
class PassageOwner:
    """The attributes that a record copies to its passages, on which filters operate. `turn` is a message's.

    :param dated: Whether a caller gave the time; memories of one source and one such time belong together.
    """

    kind: PassageKind
    id: int
    source: str
    occurred_at: datetime
    archived: bool
    dated: bool = False
    turn: Utterance | None = None


def searched_text(text: str, speaker: str | None) -> str:
    """Return the text that is analysed, and embedded unless it is too long."""
    return text if speaker is None else f"{speaker}: {text}"


class EmbeddedPart(Enum):
    """The part to embed of a text that is longer than the model's window (`souvenir.retrieval.preparation`)."""

    ALL = "all"
    FIRST_WINDOW = "first window"
    HEAD = "head"


class Embeddable(NamedTuple):
    """The input of a vector.

    :param late: Whether its token vectors are stored too.
    """

    text: str
    part: EmbeddedPart
    late: bool


def embeddable(text: str, profile: Profile, spoken_by: SpokenBy | None) -> Embeddable:
    """Choose the part to embed: the start of a message, and less of it for an assistant's answer, which is long.

    docs/ranking.md has the measurements.
    """
    late = profile in LATE_PROFILES
    if spoken_by is None:
        return Embeddable(text, EmbeddedPart.ALL, late)
    answers = profile is Profile.CHAT and spoken_by.role is MessageRole.ASSISTANT
    part = EmbeddedPart.HEAD if answers else EmbeddedPart.FIRST_WINDOW
    return Embeddable(searched_text(text, spoken_by.speaker), part, late)


_CODES_AT = 5
"""Bytes of the stored form before the codes."""


class TokenCodes(NamedTuple):
    """The token vectors of a passage as stored.

    :param space: `Embedder.token_space` of the model. :param codes: Unit vectors times 127, (tokens, dim).
    """

    space: str
    codes: NDArray[np.int8]

    def to_bytes(self) -> bytes:
        """Four bytes for the space, one for the dimension, and the codes row by row."""
        return bytes.fromhex(self.space) + bytes([self.codes.shape[1]]) + self.codes.tobytes()

    @staticmethod
    def are_sound(stored: bytes, dim: int) -> bool:
        """Return whether bytes can be the result of `to_bytes` for vectors of this dimension."""
        return len(stored) >= _CODES_AT and stored[4] == dim and dim > 0 and (len(stored) - _CODES_AT) % dim == 0

    @classmethod
    def from_bytes(cls, stored: bytes) -> TokenCodes:
        """Return the inverse of `to_bytes`.

        :raises ValueError: If the bytes are not its result.
        """
        codes = np.frombuffer(stored, np.int8, offset=_CODES_AT)
        return cls(stored[:4].hex(), codes.reshape(-1, stored[4]))


class Embedding(NamedTuple):
    """:param vector: Unit vector (dim,). :param tokens: Of a passage of `LATE_PROFILES`; None: they are missing."""

    vector: FloatVector
    tokens: TokenCodes | None = None


@dataclass(frozen=True, slots=True)
class Passage:
    """The embedded and searched unit: a text that fits in the model's window, with its filter attributes.

    :param fact_id: The fact of a memory that it belongs to; None: the memory's own text.
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
    """The filter and score attributes of a passage in an index; missing ids and `flags` are 0."""

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
    """Properties of the form of a message's text."""

    QUESTION = 1
    TIME = 2
    NUMBER = 4
    NAME = 8


@dataclass(frozen=True, slots=True)
class PassageColumns:
    """The inputs of the field scores for an index's n passages; arrays of shape (n,).

    :param profiles: `Profile` values. :param only_profile: The profile of all passages, if there is only one.
    :param flags: `TurnFlag` values. :param lengths: Number of terms.
    :param by_user: Mask of messages of the user; None if there are none of an assistant.
    :param by_named: Mask of messages of the only speaker that the query names; None if it names none or several.
    """

    profiles: NDArray[np.uint8]
    only_profile: Profile | None
    occurred_us: NDArray[np.int64]
    flags: NDArray[np.uint8]
    lengths: NDArray[np.uint32]
    by_user: NDArray[np.bool_] | None
    by_named: NDArray[np.bool_] | None


FieldScores = Mapping[str, NDArray[np.float32]]
"""Terms of a score in addition to those of the two arms, by name, each of shape (n,)."""


@dataclass(frozen=True, slots=True)
class PreparedPassage:
    """A passage without an id: analysed and embedded, outside of all locks.

    :param model_id: Of the model that made `embedding`.
    :param following: The id and the embedding of the model that is about to replace it.
    :param spoken_by: For a message. :param fact: For a passage of a fact, the whole fact.
    """

    text: str
    profile: Profile
    embedding: Embedding
    chunks: Chunks
    model_id: str
    following: tuple[str, Embedding] | None = None
    spoken_by: SpokenBy | None = None
    fact: str | None = None

    @property
    def embeddable(self) -> Embeddable:
        return embeddable(self.text, self.profile, self.spoken_by)

    def embedding_by(self, model_id: str) -> Embedding | None:
        """Return the embedding made by this model, if there is one."""
        if model_id == self.model_id:
            return self.embedding
        if self.following is not None and self.following[0] == model_id:
            return self.following[1]
        return None


@dataclass(frozen=True, slots=True)
class FormerText:
    """The text of an owner at a past time, if its passages differ now.

    :param fact_ids: The ids of its facts, by their texts.
    """

    owner: PassageOwner
    passages: Sequence[PreparedPassage]
    fact_ids: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PastPassages:
    """The passages of one kind at a past time.

    :param unchanged: Ids of owners with unchanged passages, without `related`.
    :param former: Owners whose passages have changed, as they were.
    :param related: Ids of owners with unchanged passages that share words with those of `former`.
    """

    at: datetime
    unchanged: Sequence[int]
    former: Sequence[FormerText]
    related: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class PassageAdded:
    passage: Passage
    embedding: Embedding
    chunks: Chunks


@dataclass(frozen=True, slots=True)
class PassageRemoved:
    passage_id: int
    kind: PassageKind


@dataclass(frozen=True, slots=True)
class OwnerChanged:
    """The filter attributes of an owner changed; its passages did not."""

    kind: PassageKind
    owner_id: int
    source: str
    occurred_at: datetime
    archived: bool
    dated: bool


@dataclass(frozen=True, slots=True)
class TokensAdded:
    """A passage without token vectors got them."""

    passage_id: int
    kind: PassageKind
    tokens: TokenCodes


IndexChange = PassageAdded | PassageRemoved | OwnerChanged | TokensAdded
"""The effect of a committed transaction on an index. Passages are immutable; they are only added and removed."""


def kind_of(change: IndexChange) -> PassageKind:
    """Return the kind of the passages that a change is about."""
    return change.passage.kind if isinstance(change, PassageAdded) else change.kind
