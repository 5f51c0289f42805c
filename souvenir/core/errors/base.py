"""The base of the tree."""

from __future__ import annotations

from typing import Any, ClassVar


class SouvenirError(Exception):
    """Base of the tree. `message` is fit for a client; `code` is stable; `status` is the HTTP status."""

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.message = message

    @property
    def detail(self) -> Any:
        """What a client is sent: the message, unless clients of this error know an object."""
        return self.message
