"""Decide by their keys whether one name is short for another: Mel for Melanie, Melanie for Melanie Smith, Dr Patel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from souvenir.core.types import ConceptKind
from souvenir.knowledge.recognition.gazetteer import (
    ABBREVIATIONS,
    COMMON_WORDS,
    GIVEN_NAMES,
    HEADS,
    KNOWN,
    LEGAL_FORMS,
    LONG_NAMES,
    NAMES_AND_WORDS,
    RELATIVES,
    SHORT_FORMS,
    TITLES,
)

MIN_REST_CHARS = 2
"""A short form lacks as many letters at least: Mel and Melanie, but not Ann and Anna."""

CACHED_KEYS = 65_536
"""Keys whose parts are remembered: every new concept is compared with all others of its agent."""

MIN_INITIALS = 3
"""Two letters are the initials of too many names."""

_TITLES = TITLES - RELATIVES
_WRITTEN_OUT = {"mt": "mount", "st": "street", "rd": "road", "ave": "avenue"}


def is_short_for(short: str, long: str) -> bool:
    """Return True if the key of a name may be short for that of another person, organisation, product or place."""
    if short == long:
        return False
    if long in ABBREVIATIONS.get(short, ()):
        return True
    ours, theirs = short.split(), long.split()
    if _written_out(ours) == theirs or _written_out(theirs) == ours or _is_initials(short, theirs):
        return True
    if theirs[:-1] == ours and (theirs[-1] in LEGAL_FORMS or _is_shortened(ours, theirs[-1])):
        return True
    if len(ours) == 1 and _is_model(theirs) and theirs[0] == short and short not in COMMON_WORDS:
        return True
    ours, title = _without_title(ours)
    theirs, _ = _without_title(theirs)
    if not ours or not theirs or len(ours) > len(theirs):
        return False
    if ours == theirs:
        return not title
    if len(ours) > 1 or not (_is_given(theirs[0]) or (title and len(theirs) == 2)):
        return False
    name = ours[0]
    if theirs[-1] in HEADS or long in KNOWN:
        return False
    if len(theirs) > 1 and name == theirs[-1]:
        return name not in GIVEN_NAMES and name not in KNOWN and name not in COMMON_WORDS
    if title or not (_is_given(name) or name in LONG_NAMES):
        return False
    return (len(theirs) > 1 and name == theirs[0]) or _is_short_form(name, theirs[0])


def possible_keys(key: str) -> tuple[set[str], str]:
    """Return the keys that a name may be short for or may be shortened to, and a prefix of more of the former."""
    words, _ = _without_title(key.split())
    found = {" ".join(words), " ".join(_without_legal_form(words)), *ABBREVIATIONS.get(key, ())}
    found |= {short for short, long in ABBREVIATIONS.items() if key in long}
    found |= {f"{title} {word}" for title in _TITLES for word in (words[-1:] or [""])}
    found |= {f"{key} {form}" for form in LEGAL_FORMS}
    found |= {" ".join(_written_out(words)), " ".join(words[:-1]), "".join(word[0] for word in words)}
    if words:
        first = words[0]
        found |= {first, words[-1], *LONG_NAMES.get(first, ())}
        found |= {first[:end] for end in range(2, len(first))} & SHORT_FORMS
        found |= {short for short, long in LONG_NAMES.items() if first in long}
    return found - {"", key}, key if len(words) == 1 else ""


def sought_words(key: str) -> set[str]:
    """Return the words and initials of which one is among the `handles` of a longer name that this one is short for."""
    words, _ = _without_title(key.split())
    return {words[0], *LONG_NAMES.get(words[0], ())} if len(words) == 1 else set()


@lru_cache(CACHED_KEYS)
def handles(key: str) -> tuple[str, ...]:
    """Return the first and the last word of a name of several words, and its initials; its only word otherwise."""
    words = key.split()
    return (words[0], words[-1], "".join(word[0] for word in words)) if len(words) > 1 else tuple(words)


def longest(names: Sequence[str]) -> str | None:
    """Return the name that all of these are short for; None if they name several people."""
    best = max(names, key=lambda name: (len(name.split()), len(name), name), default=None)
    if best is None or any(name != best and not is_short_for(name, best) for name in names):
        return None
    return best


def _written_out(words: Sequence[str]) -> list[str]:
    return [_WRITTEN_OUT.get(word, word) for word in words]


def _is_initials(short: str, words: Sequence[str]) -> bool:
    return MIN_INITIALS <= len(words) == len(short) and short == "".join(word[0] for word in words)


def _is_shortened(words: Sequence[str], head: str) -> bool:
    """Return True for a name of several words without its last one, such as School."""
    return len(words) > 1 and HEADS.get(head) is ConceptKind.ORGANISATION and " ".join(words) not in KNOWN


def _is_model(words: Sequence[str]) -> bool:
    """Return True for the name of a product that ends with a model number: Yamaha F70."""
    return len(words) > 1 and any(char.isdigit() for char in words[-1]) and not words[-1][0].isdigit()


def _is_given(word: str) -> bool:
    return word in GIVEN_NAMES or word in NAMES_AND_WORDS


def _is_short_form(short: str, long: str) -> bool:
    if long in LONG_NAMES.get(short, ()):
        return True
    return (
        short in SHORT_FORMS and long.isalpha() and long.startswith(short) and len(long) - len(short) >= MIN_REST_CHARS
    )


def _without_title(words: Sequence[str]) -> tuple[list[str], bool]:
    has_title = len(words) > 1 and words[0] in _TITLES
    return list(words[1:] if has_title else words), has_title


def _without_legal_form(words: Sequence[str]) -> list[str]:
    return list(words[:-1] if len(words) > 1 and words[-1] in LEGAL_FORMS else words)
