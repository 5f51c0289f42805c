"""Errors of records whose stored bytes changed on disk."""

from __future__ import annotations

from souvenir.core.errors.base import SouvenirError


class RecordUnreadable(SouvenirError):
    code = "record_unreadable"

    def __init__(self, record: str) -> None:
        super().__init__(
            f"{record} is damaged on disk and cannot be read; stop the service and run `python app.py check --repair`, "
            "or delete it"
        )


class MemoryUnreadable(RecordUnreadable):
    code = "memory_unreadable"

    def __init__(self, memory_id: int) -> None:
        super().__init__(f"Memory ID {memory_id}")
        self.memory_id = memory_id


class MessageUnreadable(RecordUnreadable):
    code = "message_unreadable"

    def __init__(self, uid: str) -> None:
        super().__init__(f"Message {uid!r}")
        self.uid = uid


class BlockUnreadable(RecordUnreadable):
    code = "block_unreadable"

    def __init__(self, label: str) -> None:
        super().__init__(f"Block {label!r}")
        self.label = label
