"""Agent access levels: the sets that routes declare (`access=`), and the check of them.

Levels limit reading. Routes that store or delete need none, since an agent may store what it is given.
"""

from __future__ import annotations

from souvenir.core.errors import AccessLimited
from souvenir.core.types import AccessLevel, AccessLevels

Needs = frozenset[AccessLevel]

NOTHING: Needs = frozenset()
SEARCHING: Needs = frozenset({AccessLevel.QUICK})
REMEMBERED: Needs = frozenset({AccessLevel.FULL})
SAID: Needs = frozenset({AccessLevel.LOGS})
EVERYTHING: Needs = REMEMBERED | SAID


def require_levels(given: AccessLevels, needed: Needs, agent: str) -> None:
    """:raises AccessLimited: If a needed level is not given."""
    missing = given.missing(needed)
    if missing:
        raise AccessLimited(agent, missing)
