"""How what Mem0 knows of a memory is stored: entities and the expiration date as metadata, the rest as it is.

A name in a caller's own metadata that stands for something else in this service is stored with a prefix, and shown and
filtered by without it, so that no caller can set an entity, a field of the record or a mark of the service by metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from souvenir.api.metadata import FROM_THE_SERVICE
from souvenir.core.labels import ENTITIES, MARKS, USER_ID
from souvenir.core.types import Memory
from souvenir.memories.conflicts import RESOLUTION

SOURCE = "mem0"
"""The source of memories from these routes; one that a model extracted for a user is in `USERS`."""

USERS = f"{SOURCE}/users/"

AGENT_ID = "agent_id"
"""The agent is the namespace; the other entities are stored as metadata."""

EXPIRATION = "expiration_date"

APART = "mem0:"
_OF_FIELDS = {"document_at", "pinned", "archived", "entity_key", "origin_class", "span"}
_TAKEN = frozenset({*ENTITIES, AGENT_ID, EXPIRATION, *FROM_THE_SERVICE, *_OF_FIELDS, *MARKS, RESOLUTION})


def stored_name(name: str) -> str:
    """Return the name under which a name of a caller's metadata is stored."""
    return APART + name if name in _TAKEN or name.startswith((APART, "_policy_")) else name


def stored_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    return {stored_name(name): value for name, value in metadata.items()}


def shown_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return a caller's metadata as it was given; what the service noted is left out."""
    own = {name: value for name, value in metadata.items() if stored_name(name) == name}
    apart = {name.removeprefix(APART): value for name, value in metadata.items() if name.startswith(APART)}
    return {**own, **apart}


def source_of(user: str) -> str:
    """Return the source of what a model extracts for a user, whose name has no slash."""
    return USERS + user


def text_of(memory: Memory, name: str) -> str | None:
    """Return the text under a name of the metadata, where other routes store values of any kind."""
    held = memory.metadata.get(name)
    return held if isinstance(held, str) else None


def user_of(memory: Memory) -> str | None:
    named = text_of(memory, USER_ID)
    if named is None and memory.source.startswith(USERS):
        return memory.source.removeprefix(USERS)
    return named
