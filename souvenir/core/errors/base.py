"""The base class of all errors."""

from __future__ import annotations

from typing import Any, ClassVar


class SouvenirError(Exception):
    """Base class. `message` may be shown to clients; `code` is stable; `status` is the HTTP status.

    `retry_after_s` is the time until the next attempt may succeed; None if waiting alone does not help.
    """

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    retry_after_s: int | None = None

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    @property
    def detail(self) -> Any:
        """The `detail` of the response: the message, or an object for errors whose clients expect one."""
        return self.message
