"""What a tag is, and when two are one: a short label that keeps its case and is matched without it."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from souvenir.errors import InvalidRequest

MAX_TAG_CHARS = 100
MAX_TAGS = 50
"""Of one memory."""

WORDS_READ = 64
"""Of a question, when it is looked for tags."""

WORDS_IN_A_TAG = 3
"""At most, of a tag that a question names."""

_JOINTS = (" ", "-", "_")
_AROUND_WORDS = ".,;:!?\"'()[]{}“”‘’«»"


def fold(tag: str) -> str:
    """What two spellings of a tag have in common."""
    return unicodedata.normalize("NFKC", tag).casefold()


def clean_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """The tags without blanks around them; of two spellings of one, the first.

    :raises InvalidRequest: If one is empty or too long, or there are too many.
    """
    found: dict[str, str] = {}
    for tag in tags:
        clean = " ".join(tag.split())
        if not 1 <= len(clean) <= MAX_TAG_CHARS or not clean.isprintable():
            raise InvalidRequest(f"A tag takes 1 to {MAX_TAG_CHARS} printable characters")
        found.setdefault(fold(clean), clean)
    return few(tuple(found.values()))


def few(tags: tuple[str, ...]) -> tuple[str, ...]:
    """The tags, which one memory shall have.

    :raises InvalidRequest: If there are too many.
    """
    if len(tags) > MAX_TAGS:
        raise InvalidRequest(f"A memory takes at most {MAX_TAGS} tags, and these are {len(tags)}; take some away")
    return tags


def inherited(tags: Sequence[str], olds: Iterable[str]) -> tuple[str, ...]:
    """The tags of what takes the place of others: its own and theirs, as many as a memory takes."""
    return joined(tags, olds)[:MAX_TAGS]


def joined(tags: Sequence[str], more: Iterable[str], without: Iterable[str] = ()) -> tuple[str, ...]:
    """Tags with more of them, then without some; a spelling that is there stays."""
    gone = {fold(tag) for tag in without}
    found: dict[str, str] = {}
    for tag in (*tags, *more):
        found.setdefault(fold(tag), tag)
    return tuple(tag for folded, tag in found.items() if folded not in gone)


def named_in(text: str) -> set[str]:
    """Every tag, folded, that the words of a text could name: up to three that follow each other."""
    words = [word.strip(_AROUND_WORDS) for word in fold(text).split()[:WORDS_READ]]
    found: set[str] = set()
    for start in range(len(words)):
        for end in range(start + 1, min(start + WORDS_IN_A_TAG, len(words)) + 1):
            found |= {joint.join(words[start:end]) for joint in _JOINTS}
    return found - {""}
