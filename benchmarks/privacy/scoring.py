"""Recall and precision by character.

Recall of a kind: the share of the characters of its labels that any finding covers, since whatever covers them redacts
them. Precision of a kind: the share of the characters of its findings that lie in a label of any personal data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from benchmarks.privacy.data_sets import ADDRESS, LabelledText
from benchmarks.privacy.finders import Finder

ALL = "together"


@dataclass(slots=True)
class Score:
    """Counts of characters by kind, and under `ALL`."""

    labelled: Counter[str] = field(default_factory=Counter)
    covered: Counter[str] = field(default_factory=Counter)
    marked: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)

    def recall(self, kind: str) -> float:
        return self.covered[kind] / self.labelled[kind] if self.labelled[kind] else float("nan")

    def precision(self, kind: str) -> float:
        return self.right[kind] / self.marked[kind] if self.marked[kind] else float("nan")


def score(finder: Finder, texts: Iterable[LabelledText]) -> Score:
    total = Score()
    for text in texts:
        _add(total, finder, text)
    return total


def _add(total: Score, finder: Finder, text: LabelledText) -> None:
    findings = finder.find(text.text)
    marked = _characters((finding.start, finding.end) for finding in findings)
    personal = _characters((label.start, label.end) for label in text.labels)
    kinds = {finding.kind for finding in findings} | {label.kind for label in text.labels if label.kind}
    for kind in [*kinds, ALL]:
        wanted = _characters(
            (label.start, label.end) for label in text.labels if label.kind and kind in (label.kind, _total(label.kind))
        )
        found = _characters(
            (finding.start, finding.end) for finding in findings if kind in (finding.kind, _total(finding.kind))
        )
        total.labelled[kind] += len(wanted)
        total.covered[kind] += len(wanted & marked)
        total.marked[kind] += len(found)
        total.right[kind] += len(found & personal)


def _total(kind: str) -> str | None:
    """Postal addresses have no form of their own, so they do not count in the total."""
    return None if kind == ADDRESS else ALL


def outside(finder: Finder, texts: Iterable[LabelledText]) -> list[str]:
    """What lies in no label, with the words around it, for people to judge."""
    return [
        f"{finding.kind}: …{_line(text.text, max(0, finding.start - 40), finding.start)}"
        f"[{_line(text.text, finding.start, finding.end)}]{_line(text.text, finding.end, finding.end + 20)}…"
        for text in texts
        for finding in finder.find(text.text)
        if not _characters([(finding.start, finding.end)])
        <= _characters((label.start, label.end) for label in text.labels)
    ]


def _line(text: str, start: int, end: int) -> str:
    return " ".join(text[start:end].split("\n"))


def _characters(spans: Iterable[tuple[int, int]]) -> set[int]:
    return {at for start, end in spans for at in range(start, end)}


def halves(sets: Iterable[Sequence[LabelledText]]) -> tuple[list[LabelledText], list[LabelledText]]:
    """The rows that the rules were developed on, every second one of each set, and the others."""
    kept = [*sets]
    return [text for texts in kept for text in texts[::2]], [text for texts in kept for text in texts[1::2]]
