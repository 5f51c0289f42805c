"""Paragraphs: recall of the typed statements, and whether their category matches their type."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType

from benchmarks.extraction.data_sets import Paragraph
from benchmarks.extraction.facts import share
from benchmarks.extraction.learners import Learned, LearnedFact, Learner, Said
from benchmarks.extraction.matching import COSINE, THRESHOLDS, Likeness, matches
from benchmarks.report import progress

NAMESPACE = "paragraphs"
AT = datetime(2025, 1, 1, tzinfo=UTC)
"""The set says no time, and equal runs shall ask equal questions."""

CATEGORIES: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "decision": frozenset({"DECISION"}),
        "commitment": frozenset({"DECISION"}),
        "preference": frozenset({"DETAIL"}),
        "opinion": frozenset({"DETAIL"}),
        "fact": frozenset({"DETAIL", "LEARNING"}),
    }
)
"""The categories that fit each type of the set; the service has three, the set has five types."""


@dataclass(frozen=True, slots=True)
class TypeFigures:
    """Statements by type: how many there are, how many were found, and of those how many under a category that fits."""

    wanted: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    typed: Counter[str] = field(default_factory=Counter)
    learned: int = 0

    def __add__(self, other: TypeFigures) -> TypeFigures:
        return TypeFigures(
            self.wanted + other.wanted,
            self.found + other.found,
            self.typed + other.typed,
            self.learned + other.learned,
        )

    @property
    def recall(self) -> float:
        return share(self.found.total(), self.wanted.total())

    @property
    def typed_recall(self) -> float:
        """Found, and under a category that fits."""
        return share(self.typed.total(), self.wanted.total())


def learn_paragraphs(learner: Learner, paragraphs: Sequence[Paragraph]) -> list[Learned]:
    learned = [learner.learn(Said(NAMESPACE, paragraph.id, [paragraph.text], AT)) for paragraph in paragraphs]
    progress(f"{learner.name}: {len(paragraphs)} paragraphs")
    return learned


def figures_of_paragraphs(
    paragraphs: Sequence[Paragraph], learned: Sequence[Learned], likeness: Likeness
) -> TypeFigures:
    figures = TypeFigures()
    for paragraph, one in zip(paragraphs, learned, strict=True):
        figures += figures_of(paragraph, one.facts, likeness)
    return figures


def figures_of(paragraph: Paragraph, found: Sequence[LearnedFact], likeness: Likeness) -> TypeFigures:
    """Of one paragraph; what was found is told by cosine."""
    expected = paragraph.expected
    same = (
        matches(likeness([fact.text for fact in found], [one.text for one in expected]), THRESHOLDS[COSINE])
        if found and expected
        else {}
    )
    return TypeFigures(
        Counter(one.type for one in expected),
        Counter(expected[reference].type for reference in same.values()),
        Counter(
            expected[reference].type
            for fact, reference in same.items()
            if found[fact].category in CATEGORIES[expected[reference].type]
        ),
        len(found),
    )
