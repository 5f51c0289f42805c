"""More than is taken, at once or at all."""

from __future__ import annotations

from typing import Any

from souvenir.errors.base import SouvenirError


class BodyTooSlow(SouvenirError):
    code = "body_too_slow"
    status = 408

    def __init__(self, min_bytes_per_s: int) -> None:
        super().__init__(f"The request body came too slowly; send at least {min_bytes_per_s} bytes a second")
        self.min_bytes_per_s = min_bytes_per_s


class PayloadTooLarge(SouvenirError):
    code = "payload_too_large"
    status = 413

    def __init__(self, max_body_bytes: int) -> None:
        super().__init__(f"The request body is larger than {max_body_bytes} bytes; send it in smaller parts")
        self.max_body_bytes = max_body_bytes


class Overloaded(SouvenirError):
    code = "overloaded"
    status = 429

    def __init__(self, message: str, *, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class TooManyAttempts(Overloaded):
    code = "too_many_attempts"

    def __init__(self, *, retry_after_s: int) -> None:
        super().__init__("Too many failed authentication attempts", retry_after_s=retry_after_s)


class ExtractQueueFull(Overloaded):
    code = "extract_queue_full"

    def __init__(self, queue_depth: int, queue_max: int, *, retry_after_s: int) -> None:
        super().__init__("Too many extractions wait; try again in a while", retry_after_s=retry_after_s)
        self.queue = {"queue_depth": queue_depth, "queue_max": queue_max}

    @property
    def detail(self) -> dict[str, Any]:
        return {"error": self.code, "message": self.message, **self.queue, "retry_after_sec": self.retry_after_s}
