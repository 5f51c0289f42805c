"""Errors of requests that conflict with the current state."""

from __future__ import annotations

from souvenir.core.errors.base import SouvenirError


class Conflict(SouvenirError):
    code = "conflict"
    status = 409


class MemoryPinned(Conflict):
    code = "memory_pinned"

    def __init__(self, memory_id: int, hint: str) -> None:
        super().__init__(f"Memory ID {memory_id} is pinned; {hint}")
        self.memory_id = memory_id


class MemoryArchived(Conflict):
    code = "memory_archived"

    def __init__(self, memory_id: int, hint: str) -> None:
        super().__init__(f"Memory ID {memory_id} is archived; {hint}")
        self.memory_id = memory_id


class KeyTaken(Conflict):
    code = "key_taken"

    def __init__(self, source: str, key: str, memory_id: int) -> None:
        super().__init__(f"Memory ID {memory_id} already has the key {key!r} in source {source!r}; change that one")
        self.source = source
        self.key = key
        self.memory_id = memory_id


class BlockExists(Conflict):
    code = "block_exists"

    def __init__(self, label: str) -> None:
        super().__init__(f"There is a block {label!r} already; change it with PUT")
        self.label = label


class BlockReadOnly(Conflict):
    code = "block_read_only"

    def __init__(self, label: str) -> None:
        super().__init__(f"Block {label!r} is read-only; send read_only false with the change")
        self.label = label


class SessionEnded(Conflict):
    code = "session_ended"

    def __init__(self, name: str) -> None:
        super().__init__(f"Session {name!r} has ended; start a new one")
        self.name = name


class UndoBlocked(Conflict):
    code = "undo_blocked"


class BlockChanged(SouvenirError):
    code = "block_changed"
    status = 412

    def __init__(self, label: str, version: int) -> None:
        super().__init__(f"Block {label!r} is at version {version} by now; read it again and send its ETag in If-Match")
        self.label = label
        self.version = version


class MemoryChanged(SouvenirError):
    code = "memory_changed"
    status = 412

    def __init__(self, memory_id: int) -> None:
        super().__init__(f"Memory ID {memory_id} was changed meanwhile; read it again and send its ETag in If-Match")
        self.memory_id = memory_id
