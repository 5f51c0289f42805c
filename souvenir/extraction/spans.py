"""Spans of a text that are hidden, and of what kind."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from souvenir.extraction.turns import RemovedKind


@dataclass(frozen=True, slots=True)
class HiddenSpan:
    kind: RemovedKind
    start: int
    end: int


def merged(spans: Iterable[HiddenSpan]) -> list[HiddenSpan]:
    """The spans in order, without overlap: what two share is of the one that begins first."""
    found: list[HiddenSpan] = []
    done = 0
    for span in sorted(spans, key=lambda span: (span.start, -span.end)):
        start = max(span.start, done)
        if start < span.end:
            found.append(HiddenSpan(span.kind, start, span.end))
            done = span.end
    return found


def holds(spans: Sequence[HiddenSpan], at: int) -> bool:
    """Whether a character lies in one of the spans, which ascend and do not overlap."""
    behind = bisect_right(spans, at, key=lambda span: span.start) - 1
    return behind >= 0 and at < spans[behind].end
