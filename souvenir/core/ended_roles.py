"""Which roles a stated end ends: who left a job ends "your manager", but neither "your sister" nor "your friend"."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple


class EndCause(StrEnum):
    """The causes by which roles end, as stored: someone stops working, someone moves out, or the user leaves.

    The `NEW_` ones are of roles that one person or place has at a time: such a role ends when another one has it. The
    dead keep their roles.
    """

    STOPPED_WORK = "stopped work"
    MOVED_OUT = "moved out"
    PLACE_LEFT = "place left"
    JOB_LEFT = "job left"
    NEW_BOSS = "new boss"
    NEW_SUPERVISOR = "new supervisor"
    NEW_LANDLORD = "new landlord"
    NEW_WORKPLACE = "new workplace"
    NEW_HOME = "new home"
    DIED = "died"


class End(NamedTuple):
    """A stated end.

    :param key: Of the concept whose role ends, or that has the role now; None if the user left their job.
    """

    cause: EndCause
    key: str | None
    at: datetime


_OF_ITSELF = frozenset((EndCause.STOPPED_WORK, EndCause.MOVED_OUT, EndCause.PLACE_LEFT))
"""Causes that end the roles of the concept that they name; the others end the roles of other concepts."""

_BOSS = r"boss|(?:line )?manager|chef(?:in)?|jef[ea]|baas"
_AT_WORK = (
    rf"{_BOSS}|colleague|co-?worker|(?:team|shift) lead(?:er)?|charge nurse|kolleg(?:e|in)|compañer[oa]|collega"
    r"|leidinggevende|encargad[oa]"
)
_SUPERVISOR = r"supervisora?|betreuer(?:in)?|begeleider"
_LANDLORD = r"landlord|landlady|vermieter(?:in)?|caser[oa]|huisbaas|verhuurder"
_NEAR = (
    r"(?:flat|room|house)mate|mitbewohner(?:in)?|huisgeno(?:ot|te)|compañer[oa] de piso|neighbou?r|nachbar(?:in)?"
    r"|vecin[oa]|buur(?:man|vrouw)"
)
_STAFF = (
    rf"{_AT_WORK}|{_SUPERVISOR}|head|director|directora?|direktor(?:in)?|assistant|apprentice|intern|secretary"
    r"|treasurer|nurse|lead|editor|consultant|accountant|agent|vorgesetzte[r]?|contact|dispatcher|roaster|chair"
    r"|supplier|lieferant(?:in)?|proveedora?|leverancier"
)
_OWNED = (
    r"(?:(?:your|our|the|(?:mein|dein|unser)e?|der|die|mi|el|la|nuestr[oa]|mijn|onze|de) )?"
    r"(?:(?:new|neuer?|nuev[oa]|nieuwe) )?"
)
_WORKPLACE = r"where you (?:work|teach|nurse)|wo du arbeitest|donde trabajas|waar je werkt"
_HOME = r"where you live|wo du (?:wohnst|lebst)|donde vives|waar je woont"


def _role(nouns: str) -> re.Pattern[str]:
    return re.compile(rf"{_OWNED}(?:{nouns})", re.IGNORECASE)


def _role_with(nouns: str) -> re.Pattern[str]:
    """Words may stand before and after the noun: "your practice manager", "head of science"."""
    after = r"(?: (?:of|at|in|from|there|here|de|von|bei|van|bij)\b.*)?"
    return re.compile(rf"(?:[\w'’.-]+ ){{0,3}}(?:{nouns}){after}", re.IGNORECASE)


_ENDED = {
    EndCause.STOPPED_WORK: _role_with(_STAFF),
    EndCause.MOVED_OUT: _role_with(_NEAR),
    EndCause.PLACE_LEFT: re.compile(r"where you (?!\w+ed$|taught)\w+|wo du \w+|donde \w+|waar je \w+"),
    EndCause.JOB_LEFT: _role(_AT_WORK),
    EndCause.NEW_BOSS: _role(_BOSS),
    EndCause.NEW_SUPERVISOR: _role(_SUPERVISOR),
    EndCause.NEW_LANDLORD: _role(_LANDLORD),
    EndCause.NEW_WORKPLACE: re.compile(_WORKPLACE),
    EndCause.NEW_HOME: re.compile(_HOME),
}
_HELD_BY_ONE = tuple(cause for cause in EndCause if cause.name.startswith("NEW_"))


def new_holder(role: str) -> EndCause | None:
    """Return the cause by which a role that is new ends those of its kind; None if several may have it."""
    return next((cause for cause in _HELD_BY_ONE if _ENDED[cause].fullmatch(role)), None)


@lru_cache(maxsize=4096)
def causes_of(role: str) -> frozenset[EndCause]:
    """Return what can end a role."""
    return frozenset(cause for cause, roles in _ENDED.items() if roles.fullmatch(role))


def end_of(role: str, said_at: datetime, keys: Collection[str], ends: Iterable[End]) -> datetime | None:
    """Return when a role was last ended since it was said; None if it was not.

    :param keys: The normal forms of the concept that has the role.
    """
    causes = causes_of(role)
    ending = (one.at for one in ends if one.cause in causes and _is_after(one, said_at, keys)) if causes else ()
    return max(ending, default=None)


def is_left(keys: Collection[str], ends: Iterable[End]) -> bool:
    """Return whether an end says that a concept has left, or was left."""
    return any(one.cause in _OF_ITSELF and _is_of(one, keys) for one in ends)


def _is_after(end: End, said_at: datetime, keys: Collection[str]) -> bool:
    """A concept may have a role and lose it in one message; one may have it there instead of another one."""
    is_of_it = _is_of(end, keys)
    if end.cause in _OF_ITSELF:
        return is_of_it and end.at >= said_at
    return not is_of_it and end.at > said_at


def _is_of(end: End, keys: Collection[str]) -> bool:
    return end.key is not None and any(_is_short_for(end.key.split(), key.split()) for key in keys)


def _is_short_for(words: Sequence[str], name: Sequence[str]) -> bool:
    """Return whether words are a name or a part from its beginning: "Vestland" of "Vestland Elektro", "Mrs Kamau"."""
    return words[:1] == name[:1] and set(words) <= set(name)
