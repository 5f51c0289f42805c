"""Whether two concepts are spellings of one thing, as far as their keys and the cosine of their vectors tell.

Vectors alone do not tell it: in small models a part lies as near to its whole, and a sister to a brother, as one
spelling to another. So the letters must allow it and the vectors must agree; what only means the same ("sofa", "couch")
stays two concepts. Pure; linear in the length of the keys. docs/benchmarks.md has what the constants were chosen by.
"""

from __future__ import annotations

import re

from souvenir.concepts.spelling import singular

CANDIDATE_SIMILARITY = 0.75
"""Cosine from which keys whose letters allow it are one thing: `metre` and `meter` have .83, `http` and `https` .71."""

MATCH_MARGIN = 0.005
"""How much nearer the nearest must be than the runner-up, whose letters allow it too: between two alike is a guess."""

MIN_LETTERS = 4
"""Of what differs in a joint or a letter; shorter keys and words are too easily alike: `bc` and `b'c`."""

_SIGNS = re.compile(r"[\W_]+")
_DIGITS = re.compile(r"\d+")
_CODE = re.compile(r"[_./@]")
_SOFT = frozenset("aeiouysz")
"""Letters that spellings of one word differ in."""


def may_match(one: str, other: str) -> bool:
    """Whether the letters of two keys allow that they are spellings of one thing; in either order.

    They do where only blanks, joints and signs differ (`web site`, `#website`); and, unless it is code, which every
    letter tells apart, where words differ in an ending in -s, in one vowel, s or z, in a letter that is doubled, or in
    two that changed places, and where one key is the initials of the other (`nyc`). What has other numbers is something
    else.
    """
    if _DIGITS.findall(one) != _DIGITS.findall(other):
        return False
    ours, theirs = _SIGNS.sub("", one), _SIGNS.sub("", other)
    if ours == theirs:
        return len(ours) >= MIN_LETTERS and not ours.isdigit()
    if _CODE.search(one) or _CODE.search(other) or any(sign.isdigit() for sign in ours):
        return False
    words, others = one.split(), other.split()
    if min(len(ours), len(theirs)) >= MIN_LETTERS and _joined_singulars(words) == _joined_singulars(others):
        return True
    return _differ_softly(words, others) or _are_initials(one, others) or _are_initials(other, words)


def is_match(similarity: float, runner_up: float | None) -> bool:
    """Whether the nearest of the concepts that may match is the same thing.

    :param runner_up: The cosine of the second nearest of them; None: there is none near.
    """
    clear = runner_up is None or similarity - runner_up >= MATCH_MARGIN
    return similarity >= CANDIDATE_SIMILARITY and clear


def _joined_singulars(words: list[str]) -> str:
    return "".join(_SIGNS.sub("", singular(word)) for word in words)


def _differ_softly(ours: list[str], theirs: list[str]) -> bool:
    return len(ours) == len(theirs) and all(
        one == other or (min(len(one), len(other)) >= MIN_LETTERS and _differ_by_a_soft_letter(one, other))
        for one, other in zip(ours, theirs, strict=True)
    )


def _differ_by_a_soft_letter(ours: str, theirs: str) -> bool:
    """One vowel, s or z more or other, one letter doubled, or two that changed places; never the first."""
    if len(ours) > len(theirs):
        ours, theirs = theirs, ours
    start = 0
    while start < len(ours) and ours[start] == theirs[start]:
        start += 1
    if start == 0:
        return False
    left, right = ours[start:], theirs[start:]
    if len(theirs) == len(ours) + 1:
        return left == right[1:] and (right[0] in _SOFT or right[0] == theirs[start - 1])
    if len(theirs) != len(ours):
        return False
    if left[1:] == right[1:]:
        return left[0] in _SOFT and right[0] in _SOFT
    return left[:2] == right[1::-1] and left[2:] == right[2:]


def _are_initials(short: str, words: list[str]) -> bool:
    return len(words) > 1 and short not in words and short == "".join(word[0] for word in words)
