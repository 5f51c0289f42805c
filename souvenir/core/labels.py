"""Sources and tags, the labels of memories, and the notes of sensitive data in their metadata.

A source is a path: `proj/a/b` lies in `proj/a`. A tag is a short label that keeps its case and is matched without it.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from souvenir.core.errors import InvalidRequest
from souvenir.core.types import JsonObject

SEPARATOR, PARENT = "/", ".."


def lies_in(source: str, path: str) -> bool:
    """Whether a source is the path or lies below it: `proj/a/b` lies in `proj/a`, `proj/ab` does not."""
    return source == path or source.startswith(path + SEPARATOR)


def is_visible(source: str, paths: Sequence[str] | None) -> bool:
    """Whether a source lies in one of the paths; one with a `..` segment lies in none. No paths: all are."""
    if paths is None:
        return True
    return PARENT not in source.split(SEPARATOR) and any(lies_in(source, path) for path in paths)


MAX_TAG_CHARS = 100
MAX_TAGS = 50
"""Of one memory."""

WORDS_READ = 64
"""Of a question, when it is looked for tags."""

WORDS_IN_A_TAG = 3
"""At most, of a tag that a question names."""

AUTHORSHIP = frozenset({"author", "contributors", "promotion"})
"""Names in metadata that say who made a memory: no caller can set them, and only an admin can import them."""

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


SENSITIVE_TOPICS, SENSITIVE_DATA = "sensitive_topics", "sensitive_data"
"""Keys of metadata under which the service notes what a text touches and what was found in it."""


def without_notes(metadata: JsonObject) -> JsonObject:
    """Metadata of a text that another one takes the place of."""
    return {key: value for key, value in metadata.items() if key not in (SENSITIVE_TOPICS, SENSITIVE_DATA)}


def notes_of(metadata: JsonObject) -> JsonObject:
    """What metadata holds of what was found in its text."""
    return {key: value for key, value in metadata.items() if key in (SENSITIVE_TOPICS, SENSITIVE_DATA)}


def joined_notes(metadata: JsonObject, found: JsonObject) -> JsonObject:
    """The notes of what was found, each with what metadata holds of the same."""
    return {key: sorted({*names(metadata, key), *names(found, key)}) for key in notes_of(found) if names(found, key)}


def names(metadata: Mapping[str, object] | None, key: str) -> list[str]:
    """The names under a key, if a list of names stands there: callers write these keys too."""
    held = (metadata or {}).get(key)
    return [one for one in held if isinstance(one, str)] if isinstance(held, list) else []
