"""Extraction profiles: extraction and retention settings of the sources below a prefix, and all their statements.

Only fields that were set are stored. The profile with the longest prefix that contains a source applies; shorter
prefixes are not merged in.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from souvenir.core.errors import Conflict
from souvenir.core.labels import SEPARATOR
from souvenir.core.stored_json import StoredJson, to_json
from souvenir.core.timestamps import to_us
from souvenir.core.types import JsonObject
from souvenir.store.namespaces import Namespace
from souvenir.store.rows import first, select
from souvenir.store.sql import Connection

RULES = "rules"

CONFIDENCE_HALF_LIFE_DAYS = 90.0
"""Default half-life of the confidence of a memory, also in the policies of a profile."""


class ExtractionMode(StrEnum):
    """How much is extracted from a transcript: `aggressive` extracts more, as before a context is compacted."""

    STANDARD = "standard"
    AGGRESSIVE = "aggressive"


@dataclass(frozen=True, slots=True)
class ExtractionRules:
    """An admin's instructions that are added to the prompt."""

    always_remember: tuple[str, ...] = ()
    never_remember: tuple[str, ...] = ()
    custom_instructions: str = ""


@dataclass(frozen=True, slots=True)
class ExtractionProfile:
    """:param source_prefix: Ends with `/`; empty for the default profile.

    :param max_facts: Limit per extraction; None: EXTRACT_MAX_FACTS.
    :param max_fact_chars: Limit per fact; None: EXTRACT_MAX_FACT_CHARS.
    :param ttl_days: Older memories are archived when policies are enforced; None: no age limit.
    :param confidence_threshold: Memories with a lower confidence are archived then; None: no threshold.
    :param min_age_days: Younger memories are kept regardless of their confidence.
    :param confidence_half_life_days: Used to compute their confidence.
    :param half_life_days: Kept for clients, without effect, as is `single_call`.
    """

    source_prefix: str = ""
    mode: ExtractionMode = ExtractionMode.STANDARD
    enabled: bool = True
    max_facts: int | None = None
    max_fact_chars: int | None = None
    rules: ExtractionRules = field(default_factory=ExtractionRules)
    ttl_days: float | None = None
    confidence_threshold: float | None = None
    min_age_days: float = 0.0
    confidence_half_life_days: float = CONFIDENCE_HALF_LIFE_DAYS
    half_life_days: float = 30.0
    single_call: bool = False

    @classmethod
    def of(cls, prefix: str, fields: JsonObject) -> ExtractionProfile:
        """:param fields: The fields that were set, as JSON."""
        return _PROFILE_JSON.load({**fields, "source_prefix": prefix})

    def require_enabled(self) -> None:
        """:raises Conflict: If extraction is disabled for these sources."""
        if not self.enabled:
            raise Conflict(
                f"Extraction is switched off for {self.source_prefix!r} by its profile; "
                "set `enabled` with PUT /extraction/profiles/PREFIX, or use another source"
            )


_PROFILE_JSON = StoredJson(ExtractionProfile, unknown="ignore")


def profile_for(connection: Connection, namespace: Namespace | None, source: str) -> ExtractionProfile:
    """Return the profile of a source; the default profile if none applies.

    :param namespace: None if it was never written to.
    """
    if namespace is None:
        return ExtractionProfile()
    path = source + SEPARATOR
    row = first(
        connection,
        tuple[str, JsonObject],
        "SELECT prefix, fields FROM extraction_profiles WHERE namespace_id = ? "
        "AND substr(?, 1, length(prefix)) = prefix ORDER BY length(prefix) DESC LIMIT 1",
        (namespace.id, path),
    )
    return ExtractionProfile() if row is None else ExtractionProfile.of(*row)


def find(connection: Connection, namespace: Namespace, prefix: str) -> ExtractionProfile | None:
    held = fields(connection, namespace.id, prefix)
    return None if held is None else ExtractionProfile.of(prefix, held)


def every(connection: Connection, namespace: Namespace) -> Sequence[ExtractionProfile]:
    """Return the profiles of a namespace by prefix."""
    rows = select(
        connection,
        tuple[str, JsonObject],
        "SELECT prefix, fields FROM extraction_profiles WHERE namespace_id = ? ORDER BY prefix",
        (namespace.id,),
    )
    return [ExtractionProfile.of(prefix, held) for prefix, held in rows]


def merge(connection: Connection, namespace_id: int, prefix: str, changes: JsonObject, now: datetime) -> None:
    """Set fields of a profile, which is created if new; a field given as None is unset."""
    before = fields(connection, namespace_id, prefix) or {}
    after = _merged(before, changes)
    if changes.get(RULES) is not None:
        after[RULES] = _merged(before.get(RULES, {}), changes[RULES])
    connection.execute(
        "INSERT INTO extraction_profiles (namespace_id, prefix, fields, updated_at) VALUES (?, ?, ?, ?) "
        "ON CONFLICT (namespace_id, prefix) DO UPDATE SET fields = excluded.fields, updated_at = excluded.updated_at",
        (namespace_id, prefix, to_json(after), to_us(now)),
    )


def delete(connection: Connection, namespace_id: int, prefix: str) -> bool:
    """Delete a profile; return whether it existed."""
    connection.execute("DELETE FROM extraction_profiles WHERE namespace_id = ? AND prefix = ?", (namespace_id, prefix))
    return connection.changes() > 0


def fields(connection: Connection, namespace_id: int, prefix: str) -> JsonObject | None:
    """Return the fields of a profile that were set, as JSON; None if there is no profile."""
    found = connection.execute(
        "SELECT fields FROM extraction_profiles WHERE namespace_id = ? AND prefix = ?", (namespace_id, prefix)
    ).get
    if found is None:
        return None
    held: JsonObject = json.loads(found)
    return held


def _merged(before: JsonObject, changes: JsonObject) -> dict[str, Any]:
    return {name: value for name, value in {**before, **changes}.items() if value is not None}
