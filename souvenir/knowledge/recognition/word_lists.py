"""Read the lists of words in this folder: sections of words, separated by blanks and line ends."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from souvenir.core.types import ConceptKind

_SECTION = re.compile(r"^\[(.+)\]\n((?:[^\[#\n].*\n|\n)*)", re.MULTILINE)


def read_sections(path: Path) -> Mapping[str, frozenset[str]]:
    """Return the words of each section of a file, by its name."""
    return {name: frozenset(words.split()) for name, words in _SECTION.findall(path.read_text(encoding="utf-8"))}


def kinds_of(*groups: tuple[Iterable[str], ConceptKind]) -> Mapping[str, ConceptKind]:
    """Return the kind of each word; that of the last group that contains it."""
    return {word: kind for words, kind in groups for word in words}
