"""Statements and definitions that are found in a text: the material of insights and descriptions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from souvenir.core.types.agents import ConceptKind


class StatementKind(StrEnum):
    """The kinds of statements, as stored.

    A denial rules something out ("I never eat fish"), and a habit may contradict it. A step is what a message says as a
    whole, and may complete a promise. A withdrawal negates or cancels a plan. An introduction says that a person is
    new, or who a person is. An end says that a role has ended, or that another has it now.
    """

    PROMISE = "promise"
    APPOINTMENT = "appointment"
    CHANGE = "change"
    FACT = "fact"
    DENIAL = "denial"
    HABIT = "habit"
    STEP = "step"
    WITHDRAWAL = "withdrawal"
    INTRODUCTION = "introduction"
    END = "end"


VAGUE = "vague"
"""The attribute of a promise whose object is a pronoun, so that what completes it cannot be told: "I'll ring them"."""

BARE_REPORT = "report"
"""The attribute of a step that begins with a report without a subject: "Done, on Monday"."""

EXPLAINED = "explained"
"""The attribute of an introduction that says who a person is, but not that they are new: "our architect, Finn"."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of a person.

    :param sentence: Verbatim, without line breaks.
    :param terms: The terms by which it is compared with others.
    :param attribute: The attribute that it states, such as `home`, the unit of an amount, `VAGUE`, `BARE_REPORT`
        or `EXPLAINED`; None if it states none.
    :param value: The value of the attribute, the term of what was moved to another day, the terms of what a step
        reports as done or under way, the name of the introduced person, as it is written, or the key of the concept of
        an end, whose attribute is an `EndCause`.
    :param due: The day of a promise or an appointment, or the new day of a change.
    :param replaced: The day that a change replaces, or that a withdrawal names.
    """

    kind: StatementKind
    sentence: str
    terms: str
    attribute: str | None = None
    value: str | None = None
    due: date | None = None
    replaced: date | None = None


DESCRIBING_QUALITY = 3
"""Quality from which the sentence of a definition describes the concept; below, it only names a role in passing."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A sentence that defines a concept.

    :param quality: Higher is better; see `DESCRIBING_QUALITY`.
    :param role: What it says that the concept is, such as "my boss"; None if it has no such phrase.
    :param kind: The kind that it gives a concept of unknown kind, which is stored with the mention; None if none.
    """

    sentence: str
    quality: int
    role: str | None = None
    kind: ConceptKind | None = None
