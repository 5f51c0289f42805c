"""Values that look like secrets, and those that only stand where one would: names, examples, code."""

from __future__ import annotations

import re
from collections.abc import Sequence

from souvenir.privacy.checks.surroundings import Found

MIN_OPAQUE_CHARS = 8
MIN_UNQUOTED_PASSWORD_CHARS = 6

_STANDS_FOR_ONE = re.compile(
    r"(?i)[*x•.…_?-]+|<.*|.*\$\{.*|.*\{\{.*|%[a-z_]+%|\$[a-z_][a-z0-9_]*|\[.*|\(.*|null|none|nil|undefined|true|false|yes|no"
    r"|your[_-].*|my[_-](?:password|secret|token|key)|(?:the|a|an|is|was|and|or|in|for|to|of|has|not|must|should|can|will)"
    r"|strings?|str|int|bytes|optional|required|hidden|redacted|masked|placeholder|env|environ|example|unset|empty"
    r"|(?:os|process|settings|config|self|env|secrets|request|args|options|this|data|user|body|form)\..*|.*\(.*\)?"
)
_SENTENCE_END = ".,;:!?)"
_QUOTES = "\"'`“‘«"


def credentials(text: str, start: int, end: int) -> Sequence[Found]:
    """User and password of a URL, unless a placeholder stands for the password."""
    password = text[start:end].partition(":")[2]
    return () if _STANDS_FOR_ONE.fullmatch(password) else [(start, end)]


def opaque(text: str, start: int, end: int) -> Sequence[Found]:
    """A token: letters and digits mixed, as machines make them. Words, numbers and placeholders are none."""
    end = _without_sentence_end(text, start, end)
    value = text[start:end]
    if len(value) < MIN_OPAQUE_CHARS or _STANDS_FOR_ONE.fullmatch(value):
        return ()
    has_digit = any(character.isdigit() for character in value)
    has_letter = any(character.isalpha() for character in value)
    return [(start, end)] if has_digit and has_letter else ()


def password(text: str, start: int, end: int) -> Sequence[Found]:
    """What somebody chose. In quotes, anything but a placeholder; else what has a digit, or what is plainly assigned.

    Other words are taken for prose ("the password is wrong") or for code (``password=hashed, salt=salt``).
    """
    quoted = start > 0 and text[start - 1] in _QUOTES
    if not quoted:
        end = _without_sentence_end(text, start, end)
    value = text[start:end]
    if not value or _STANDS_FOR_ONE.fullmatch(value):
        return ()
    return [(start, end)] if quoted or _is_mixed(value) or _is_assigned(text, start, end) else ()


def _is_mixed(value: str) -> bool:
    if len(value) < MIN_UNQUOTED_PASSWORD_CHARS:
        return False
    return any(character.isdigit() for character in value) and any(character.isalpha() for character in value)


def _is_assigned(text: str, start: int, end: int) -> bool:
    """Behind ``=`` up to a space, or behind a colon up to the end of the line."""
    before, after = text[max(0, start - 4) : start].rstrip(), text[end : end + 1]
    if before.endswith("="):
        return after == "" or after.isspace() or after in "&;"
    return before.endswith((":", "：")) and after in ("", "\n", "\r")


def _without_sentence_end(text: str, start: int, end: int) -> int:
    while end > start and text[end - 1] in _SENTENCE_END:
        end -= 1
    return end
