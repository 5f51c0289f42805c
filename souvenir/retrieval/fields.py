"""Field scores: the terms of a score in addition to those of the two arms.

`Question` classifies a query. `field_scores` computes from it the terms for speaker, form and time of a turn, each with
the constants of the passage's profile. The patterns are English and linear in the length of the query.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from souvenir.core.passages import FieldScores, PassageColumns, TurnFlag
from souvenir.core.types import Profile
from souvenir.retrieval.profiles import Constants, Profiles
from souvenir.retrieval.query_framing import asks_the_assistant
from souvenir.retrieval.time_intent import TimeIntent

_WHEN = re.compile(r"\s*when|.*\b(?:what|which) (?:date|year|month)", re.IGNORECASE | re.DOTALL)
_HOW_MANY = re.compile(r"\bhow (?:many|long|much|often|old)", re.IGNORECASE)
_WHO = re.compile(r"\s*(?:who|where|what|which)", re.IGNORECASE)

FieldValues = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Question:
    """The classification of a query.

    :param role: The caller's weight for messages of the user; None: the profile's.
    :param time: The time that it names, if that was analysed.
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
    """Return the field scores that are not zero throughout, by name; `Constants` describes them."""

    def flagged(flag: TurnFlag) -> NDArray[np.bool_]:
        return (columns.flags & flag).astype(np.bool_)

    found: dict[str, FieldValues] = {}

    def add(name: str, of: Callable[[Constants], float], values: Callable[[], NDArray[np.bool_] | FieldValues]) -> None:
        only = columns.only_profile
        by_profile = _by_profile(profiles, of) if only is None else np.float32(of(profiles[only]))
        if by_profile.any():
            of_rows = by_profile[columns.profiles] if isinstance(by_profile, np.ndarray) else by_profile
            scores = of_rows * values().astype(np.float32, copy=False)
            if scores.any():
                found[name] = scores

    by_named = columns.by_named
    if by_named is not None:
        add("speaker", lambda row: row.speaker, lambda: by_named)
    by_user = columns.by_user
    if by_user is not None:
        add("role", lambda row: _role(row, question), lambda: by_user)
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


def _by_profile(profiles: Profiles, of: Callable[[Constants], float]) -> FieldValues:
    weights = np.zeros(len(Profile), dtype=np.float32)
    for profile, constants in profiles.items():
        weights[profile] = of(constants)
    return weights


def _role(constants: Constants, question: Question) -> float:
    if not constants.role or question.role is None:
        return 0.0 if question.asks_the_assistant else constants.role
    return question.role
