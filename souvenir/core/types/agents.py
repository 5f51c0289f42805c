"""Access levels of agents, and the concepts that their texts mention."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class ConceptKind(StrEnum):
    """The kind of a concept, inferred from its spelling and from the words around it.

    `name` is a name of an unknown kind, `phrase` any other subject.
    """

    PERSON = "person"
    ANIMAL = "animal"
    PLACE = "place"
    ORGANISATION = "organisation"
    PRODUCT = "product"
    EVENT = "event"
    WORK = "work"
    NAME = "name"
    PHRASE = "phrase"
    HASHTAG = "hashtag"
    CODE = "code"


class ClaimKind(StrEnum):
    """The kind of a claim about a concept. `alias`: another name of the concept, or the same concept."""

    NAME = "name"
    DESCRIPTION = "description"
    ALIAS = "alias"
    KIND = "kind"
    RELATION = "relation"


class TopicClaimKind(StrEnum):
    """The part of a topic that a language model wrote."""

    NAME = "topic_name"
    SUMMARY = "topic_summary"


class ClaimedBy(StrEnum):
    """The origin of a claim: a caller, or a language model that read a message."""

    CALLER = "caller"
    MODEL = "model"


@dataclass(frozen=True, slots=True)
class Mentioned:
    """One concept in one text.

    :param key: The normalised form of all its spellings; readable, never empty.
    :param form: Its spelling in the text.
    """

    key: str
    form: str
    kind: ConceptKind


class AccessLevel(StrEnum):
    """The names of the levels, as stored and sent."""

    QUICK = "quick_memory"
    FULL = "full_memory"
    LOGS = "logs"


@dataclass(frozen=True, slots=True)
class AccessLevels:
    """:param quick_memory: Searches with few results. :param full_memory: All memories; includes `quick_memory`.

    :param logs: Messages, sessions and users.
    """

    quick_memory: bool = True
    full_memory: bool = True
    logs: bool = True

    def missing(self, needed: Iterable[AccessLevel]) -> tuple[AccessLevel, ...]:
        """Return those of the levels that are not granted, in their order."""
        given = {AccessLevel.QUICK: self.quick_memory or self.full_memory}
        given |= {AccessLevel.FULL: self.full_memory, AccessLevel.LOGS: self.logs}
        wanted = frozenset(needed)
        return tuple(level for level in AccessLevel if level in wanted and not given[level])


UNLIMITED = AccessLevels()
"""The default levels of agents, and those of namespaces that are not agents."""
