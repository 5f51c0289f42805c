"""The shape of a context: excerpts, or an outline for a question about the course of conversations.

A question for an order, a timeline or a summary concerns many messages, and needs to know of each what it is about
rather than all that it says. Patterns are English and linear in the length of the question.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from souvenir.retrieval.query_framing import asks_the_assistant

READ_CHARS = 2_000
"""Length of the start of a question that is read."""


class ContextShape(StrEnum):
    """`AUTO` is an outline if the question asks for a course, and excerpts otherwise."""

    AUTO = "auto"
    EXCERPTS = "excerpts"
    OUTLINE = "outline"


class CourseIntent(StrEnum):
    """An aspect of the course of conversations: the order of events, as in a timeline, or a summary."""

    ORDER = "order"
    SUMMARY = "summary"


_SPOKEN = (
    "brought|mentioned|discussed|talked|raised|covered|asked|said|told|learn|worked|did|started|went|made|tried|visited"
)
_ORDER = re.compile(
    rf"\border in which\b|\border (?:that |how )?(?:i|we|she|he|they|you) (?:{_SPOKEN})|\bin (?:what|which) order\b"
    r"|\bin (?:chronological |time )?order\b(?! to\b)|\bchronolog|\btime ?line\b|\bsequence of (?:events|steps)\b",
    re.IGNORECASE,
)
_SUMMARY = re.compile(
    r"^\W*(?:(?:hey|hi|hello|ok|okay|so|please|now|then)\W+)*(?:(?:can|could|would|will) you\W+)?(?:please\W+)?"
    r"(?:summari[sz]e|recap|sum up)\b"
    r"|\b(?:give|provide|write|show|need|want|like|have|get|make)\b(?: (?:me|us))?(?: (?:an?|the|your))?(?: \w+){0,2}"
    r" (?:summary|overview|recap|rundown)\b",
    re.IGNORECASE,
)


def course_intent(question: str) -> CourseIntent | None:
    """Return the aspect of the course of conversations that a question asks for; None if it asks for no such thing."""
    read = question[:READ_CHARS]
    if _SUMMARY.search(read):
        return CourseIntent.SUMMARY
    return CourseIntent.ORDER if _ORDER.search(read) else None


@dataclass(frozen=True, slots=True)
class Form:
    """The intent of a question, and the shape of its context.

    :param shape: Not `AUTO`.
    :param of_users: True if only messages of users are shown: an order of what was brought up, unless by the assistant.
    """

    intent: CourseIntent | None
    shape: ContextShape
    of_users: bool

    @classmethod
    def of(cls, question: str, wanted: ContextShape) -> Form:
        intent = course_intent(question)
        shape = wanted
        if wanted is ContextShape.AUTO:
            shape = ContextShape.EXCERPTS if intent is None else ContextShape.OUTLINE
        ordered = intent is CourseIntent.ORDER and shape is ContextShape.OUTLINE
        return cls(intent, shape, ordered and not asks_the_assistant(question[:READ_CHARS]))

    @property
    def is_outline(self) -> bool:
        return self.shape is ContextShape.OUTLINE
