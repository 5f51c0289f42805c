"""When two tags are one, and which of them a question names."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from souvenir.core.types import Filters

BOOST = 0.2
"""A fifth more, of what scores above zero."""


def folded(tag: str) -> str:
    return unicodedata.normalize("NFKC", tag).casefold()


def all_of(tags: Iterable[str]) -> frozenset[str]:
    return frozenset(map(folded, tags))


def allowed(tags: frozenset[str], filters: Filters) -> bool:
    wanted = all_of(filters.tags)
    return not wanted or (wanted <= tags if filters.all_tags else bool(wanted & tags))


def named(tags: frozenset[str], question: str, filters: Filters) -> bool:
    """Whether one of them is filtered by, or is said in a row, with spaces or hyphens or underscores between."""
    words = [word.strip(".,;:!?\"'()[]{}“”‘’«»") for word in folded(question).split()[:64]]
    rows = [words[first : first + size] for size in (1, 2, 3) for first in range(len(words) - size + 1)]
    said = {joint.join(row) for row in rows for joint in (" ", "-", "_")} | all_of(filters.tags)
    return bool(said & tags)
