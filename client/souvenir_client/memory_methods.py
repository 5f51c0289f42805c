"""Arguments and results of the methods that memory SDKs have in common, as pure functions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from souvenir_client.records import MemoryChange, MemoryRecord, SearchHit

Item: TypeAlias = dict[str, Any]
Answer: TypeAlias = dict[str, list[Item]]

UNOWNED = "memories"
"""The source of memories without a user and a run."""

_EVENTS = {"add": "ADD", "fallback_add": "ADD", "conflict": "ADD", "update": "UPDATE", "delete": "DELETE"}
_IDS = ("new_id", "id", "old_id", "existing_id")


@dataclass(frozen=True, slots=True)
class Owner:
    """The user and the run that a memory belongs to.

    :raises ValueError: If a name is not usable in a path.
    """

    user_id: str | None
    run_id: str | None

    def __post_init__(self) -> None:
        for name in (self.user_id, self.run_id):
            if name is not None and (not name.strip() or name in (".", "..")):
                raise ValueError(f"{name!r} is not a valid user_id or run_id")

    @property
    def source(self) -> str:
        """`users/alice`, `users/alice/runs/7`, `runs/7` or `memories`."""
        named = (("users", self.user_id), ("runs", self.run_id))
        return "/".join(f"{kind}/{_segment(name)}" for kind, name in named if name is not None) or UNOWNED

    @property
    def labels(self) -> dict[str, str]:
        named = {"user_id": self.user_id, "run_id": self.run_id}
        return {key: name for key, name in named.items() if name is not None}

    def has(self, metadata: Mapping[str, Any]) -> bool:
        return all(metadata.get(key) == name for key, name in self.labels.items())


def said_in(messages: str | Mapping[str, Any] | Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The argument as a list of messages.

    :raises TypeError: If it is neither a text nor messages.
    """
    if isinstance(messages, str):
        return [{"role": "user", "content": messages}]
    said = [messages] if isinstance(messages, Mapping) else list(messages)
    if not all(isinstance(one, Mapping) for one in said):
        raise TypeError("messages must be a text, a message with role and content, or a list of messages")
    return said


def texts_of(said: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Role and text of each message that has text; the texts of several parts are joined."""
    for one in said:
        content = one.get("content")
        parts = content if isinstance(content, list) else [content]
        texts = [part.get("text") if isinstance(part, Mapping) else part for part in parts]
        text = "\n".join(part for part in texts if isinstance(part, str)).strip()
        if text:
            yield str(one.get("role", "user")), text


def item_of(memory: MemoryRecord | SearchHit) -> Item:
    """A memory in the common form; `user_id` and `run_id` are not part of its metadata."""
    labels = {key: memory.extra[key] for key in ("user_id", "run_id") if key in memory.extra}
    return {
        "id": memory.id,
        "memory": memory.text,
        "metadata": {key: value for key, value in memory.extra.items() if key not in labels},
        "created_at": memory.created_at,
        "updated_at": memory.updated_at,
        **labels,
    }


def event_of(action: Mapping[str, Any]) -> Item:
    """An action of an extraction in the common form."""
    ids = (action.get(key) for key in _IDS)
    event = _EVENTS.get(str(action.get("action")), "NONE")
    return {"id": next((one for one in ids if one is not None), None), "memory": action.get("text"), "event": event}


def change_of(memory_id: int, change: MemoryChange) -> Item:
    before, after = change.before or {}, change.after or {}
    changed = "DELETE" if change.after is None else "UPDATE"
    return {
        "memory_id": memory_id,
        "old_memory": before.get("text"),
        "new_memory": after.get("text"),
        "event": "ADD" if change.before is None else changed,
        "created_at": change.at,
        "actor": change.actor,
        "imported": change.imported,
    }


def _segment(name: str) -> str:
    return name.replace("%", "%25").replace("/", "%2F")
