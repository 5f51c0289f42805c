"""Sentence boundaries, and the fence: two lines around recalled text that separate it from the conversation.

    <recalled_memory>
    - 2025-03-30: Alice leads the billing team.
    </recalled_memory>

Invariants: text inside of the fence neither opens nor closes it, and keeps its length: each character that would begin
such a tag becomes "(", which is not reverted. Writing and reading use the same definition of a tag, which is wide: in
any case, with blanks, invisible characters, separators or full-width letters in it, with or without attributes and an
end. Pure functions, linear in the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

_END = re.compile(r"(?<=[.!?])[\"'”’)\]]{0,3}+\s++|(?<=[。！？])|\n++")
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|mr|mrs|ms|dr|prof|st|no|approx)|\b[A-Za-z])\.\s*$", re.IGNORECASE)


def sentences(text: str) -> list[tuple[int, int]]:
    """Return consecutive spans that cover the whole text; white space belongs to the preceding sentence."""
    cuts = [
        end.end()
        for end in _END.finditer(text)
        if not _ABBREVIATION.search(text, max(0, end.start() - 12), end.start())
    ]
    return [(start, end) for start, end in pairwise(sorted({0, *cuts, len(text)}))]


RECALLED = "recalled_memory"

_BEGINNINGS = "<＜﹤"
_BEGINNING = re.compile(f"[{_BEGINNINGS}]")
_SEPARATORS = "_-"
_MAX_TAG_CHARS = 200
"""Maximum length of a tag's attributes; a tag without an end within it ends with its name."""


@dataclass(frozen=True, slots=True)
class FenceTag:
    """A tag of the fence, from `start` to `end` in a text."""

    start: int
    end: int
    closing: bool


def fenced(text: str, *, name: str = RECALLED) -> str:
    """Return the text between an opening and a closing line; tags of that name in it are defused.

    :param name: Words of ASCII letters, joined by underscores.
    """
    defused = defuse(text, name=name)
    return f"<{name}>\n{defused}{'' if defused.endswith(chr(10)) or not defused else chr(10)}</{name}>\n"


def defuse(text: str, *, name: str = RECALLED) -> str:
    """Return the text without tags of that name, with the same length."""
    parts, done = [], 0
    for tag in fence_tags(text, name=name):
        parts += [text[done : tag.start], "("]
        done = tag.start + 1
    return "".join([*parts, text[done:]])


def fence_tags(text: str, *, name: str = RECALLED) -> Iterator[FenceTag]:
    """Yield the tags of that name in a text, in order."""
    letters = name.replace("_", "")
    for beginning in _BEGINNING.finditer(text):
        found = _tag(text, beginning.start(), letters)
        if found is not None:
            yield found


def _tag(text: str, start: int, letters: str) -> FenceTag | None:
    """Return the tag that begins at `start`. Stops at the next beginning of a tag, since that sign is in no name."""
    read, closing, at = "", False, start + 1
    while at < len(text) and len(read) < len(letters):
        sign = unicodedata.normalize("NFKC", text[at]).casefold()
        if sign == "/" and not read:
            closing = True
        elif letters.startswith(read + sign):
            read += sign
        elif sign not in _SEPARATORS and not _is_ignorable(text[at]):
            return None
        at += 1
    if read != letters:
        return None
    return FenceTag(start, _end(text, at), closing)


def _end(text: str, at: int) -> int:
    """Return the position after the tag's `>` if it follows soon, in the same line, before another tag; else `at`."""
    for end in range(at, min(at + _MAX_TAG_CHARS, len(text))):
        sign = text[end]
        if sign in ">＞﹥":
            return end + 1
        if sign in _BEGINNINGS or sign in "\r\n":
            break
    return at


FILLERS = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and symbols that are drawn as blanks."""

_BLANK_CATEGORIES = frozenset(("Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Mn", "Me", "Mc"))


def is_blank(text: str) -> bool:
    """Return whether the text has no visible character: only spaces, control and format characters, or lone marks."""
    return all(sign in FILLERS or unicodedata.category(sign) in _BLANK_CATEGORIES for sign in text)


def _is_ignorable(sign: str) -> bool:
    """Return whether it is a blank, a control or format character, or a combining mark."""
    return unicodedata.category(sign)[0] in "ZCM"
