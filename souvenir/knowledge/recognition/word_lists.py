"""Read the lists of words in this folder: sections of words, separated by blanks and line ends."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

_SECTION = re.compile(r"^\[(.+)\]\n((?:[^\[#\n].*\n|\n)*)", re.MULTILINE)


def read_sections(path: Path) -> Mapping[str, frozenset[str]]:
    """Return the words of each section of a file, by its name."""
    return {name: frozenset(words.split()) for name, words in _SECTION.findall(path.read_text(encoding="utf-8"))}
