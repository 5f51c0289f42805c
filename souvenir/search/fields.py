"""The terms of a score beside the two arms': who said a turn, what it looks like, when. Pure arithmetic over arrays.

What a question asks for is read once; the terms are then worked out for every passage, each by its profile's constants
(`souvenir.search.profiles`). English words; a question in another language has fewer terms.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from souvenir.passages import FieldScores, PassageColumns, TurnFlag
from souvenir.search.framing import asks_the_assistant
from souvenir.search.profiles import Constants, Profiles
from souvenir.search.time_intent import TimeIntent
from souvenir.types import Profile

_WHEN = re.compile(r"\s*when|.*\b(?:what|which) (?:date|year|month)", re.IGNORECASE | re.DOTALL)
_HOW_MANY = re.compile(r"\bhow (?:many|long|much|often|old)", re.IGNORECASE)
_WHO = re.compile(r"\s*(?:who|where|what|which)", re.IGNORECASE)

Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Question:
    """What a question asks for.

    :param role: The caller's weight of what the user said; None: the profile's.
    :param time: What it says of when, if it is read for it.
    """

    asks_when: bool
    asks_how_many: bool
    asks_who: bool
    asks_the_assistant: bool
    role: float | None = None
    time: TimeIntent | None = None

    @classmethod
    def of(cls, text: str, *, role: float | None = None, time: TimeIntent | None = None) -> Question:
        return cls(
            asks_when=_WHEN.match(text) is not None,
            asks_how_many=_HOW_MANY.search(text) is not None,
            asks_who=_WHO.match(text) is not None,
            asks_the_assistant=asks_the_assistant(text),
            role=role,
            time=time,
        )


def field_scores(question: Question, columns: PassageColumns, profiles: Profiles) -> FieldScores:
    """The terms that are not zero throughout, by name; see `Constants` for what each is."""

    def flagged(flag: TurnFlag) -> NDArray[np.bool_]:
        return (columns.flags & flag).astype(np.bool_)

    found: dict[str, Floats] = {}

    def add(name: str, of: Callable[[Constants], float], values: Callable[[], NDArray[np.bool_] | Floats]) -> None:
        by_profile, only = _by_profile(profiles, of), columns.only_profile
        if by_profile.any() if only is None else by_profile[only]:
            of_rows = by_profile[columns.profiles] if only is None else by_profile[only]
            scores = of_rows * values().astype(np.float32, copy=False)
            if scores.any():
                found[name] = scores

    by_named = columns.by_named
    if by_named is not None:
        add("speaker", lambda row: row.speaker, lambda: by_named)
    if columns.with_assistant:
        add("role", lambda row: _role(row, question), lambda: columns.by_user)
    add("question", lambda row: row.question, lambda: flagged(TurnFlag.QUESTION))
    add("length", lambda row: row.length, lambda: np.log1p(columns.lengths, dtype=np.float32))
    if question.asks_when:
        add("time_word", lambda row: row.time_word, lambda: flagged(TurnFlag.TIME))
    if question.asks_how_many:
        add("number", lambda row: row.number, lambda: flagged(TurnFlag.NUMBER))
    if question.asks_who:
        add("name", lambda row: row.name, lambda: flagged(TurnFlag.NAME))
    time = question.time
    if time is not None:
        add("period", lambda row: row.period, lambda: time.within(columns.occurred_us))
        add("day", lambda row: row.day, lambda: time.near_to(columns.occurred_us))
    return found


def _by_profile(profiles: Profiles, of: Callable[[Constants], float]) -> Floats:
    weights = np.zeros(len(Profile), dtype=np.float32)
    for profile, constants in profiles.items():
        weights[profile] = of(constants)
    return weights


def _role(constants: Constants, question: Question) -> float:
    if not constants.role or question.role is None:
        return 0.0 if question.asks_the_assistant else constants.role
    return question.role
