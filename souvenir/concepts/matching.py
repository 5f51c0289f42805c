"""Whether two concepts are spellings of one thing, as far as their keys and the cosine of their vectors tell."""

from __future__ import annotations

import re

CANDIDATE_SIMILARITY = 0.85
"""Cosine from which a concept counts as near to another: a nearer pair must stand out from these."""

MATCH_SIMILARITY = 0.92
MATCH_MARGIN = 0.03
"""That a pair must be nearer than the runner-up is: one of several that are alike is a guess."""

_DIGITS = re.compile(r"\d+")


def may_match(one: str, other: str) -> bool:
    """Whether two keys can be spellings of one thing: what has other numbers is something else."""
    return _DIGITS.findall(one) == _DIGITS.findall(other) and any(sign.isalpha() for sign in one)


def is_match(similarity: float, runner_up: float | None) -> bool:
    """Whether the nearest concept is the same thing.

    :param runner_up: The cosine of the second nearest; None: there is none near.
    """
    clear = runner_up is None or similarity - runner_up >= MATCH_MARGIN
    return similarity >= MATCH_SIMILARITY and clear
