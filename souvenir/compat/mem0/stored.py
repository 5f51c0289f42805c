"""How what Mem0 knows of a memory is stored: entities and the expiration date as metadata, the rest as it is.

A name in a caller's own metadata that stands for something else in this service is stored with a prefix, and shown and
filtered by without it, so that no caller can set an entity or a field of the record by metadata.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

from souvenir.api.metadata import FROM_THE_SERVICE
from souvenir.core.types import Memory

SOURCE = "mem0"
"""The source of memories from these routes; one that a model extracted for a user is in `USERS`."""

USERS = f"{SOURCE}/users/"

USER_ID, APP_ID, RUN_ID, AGENT_ID = "user_id", "app_id", "run_id", "agent_id"
IN_METADATA = (USER_ID, APP_ID, RUN_ID)
"""The entities that are stored as metadata; the agent is the namespace."""

EXPIRATION = "expiration_date"

APART = "mem0:"
_OF_FIELDS = {"document_at", "pinned", "archived", "entity_key", "origin_class", "span"}
_TAKEN = frozenset({*IN_METADATA, AGENT_ID, EXPIRATION, *FROM_THE_SERVICE, *_OF_FIELDS})


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
    """Return the source of what a model extracts for a user."""
    return USERS + path_name(user)


def path_name(user: str) -> str:
    """Return a name as one segment of a path."""
    return quote(user, safe=" @:|+=,;!~()*'&$").replace("..", "%2E%2E")


def user_of(memory: Memory) -> str | None:
    named = memory.metadata.get(USER_ID)
    if isinstance(named, str):
        return named
    return unquote(memory.source.removeprefix(USERS)) if memory.source.startswith(USERS) else None
