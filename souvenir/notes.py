"""What the service notes in the metadata of a text: the sensitive topics that it touches and what was found in it."""

from __future__ import annotations

from collections.abc import Mapping

from souvenir.types import JsonObject

SENSITIVE_TOPICS, SENSITIVE_DATA = "sensitive_topics", "sensitive_data"
"""Keys of metadata under which the service notes what a text touches and what was found in it."""


def without_notes(metadata: JsonObject) -> JsonObject:
    """Metadata of a text that another one takes the place of."""
    return {key: value for key, value in metadata.items() if key not in (SENSITIVE_TOPICS, SENSITIVE_DATA)}


def notes_of(metadata: JsonObject) -> JsonObject:
    """What metadata holds of what was found in its text."""
    return {key: value for key, value in metadata.items() if key in (SENSITIVE_TOPICS, SENSITIVE_DATA)}


def joined_notes(metadata: JsonObject, found: JsonObject) -> JsonObject:
    """The notes of what was found, each with what metadata holds of the same."""
    return {key: sorted({*names(metadata, key), *names(found, key)}) for key in notes_of(found) if names(found, key)}


def names(metadata: Mapping[str, object] | None, key: str) -> list[str]:
    """The names under a key, if a list of names stands there: callers write these keys too."""
    held = (metadata or {}).get(key)
    return [one for one in held if isinstance(one, str)] if isinstance(held, list) else []
