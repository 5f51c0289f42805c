"""Errors of requests: invalid ones, forbidden ones, and those over a limit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from souvenir.core.errors.base import SouvenirError


class InvalidRequest(SouvenirError):
    code = "invalid_request"
    status = 422


class NothingToDo(InvalidRequest):
    code = "nothing_to_do"
    status = 400


class JobRefused(InvalidRequest):
    """A job failed because of its request, such as one that names an unknown model."""

    code = "job_refused"

    def __init__(self, job_id: str, reason: str) -> None:
        super().__init__(f"Job {job_id!r} failed: {reason}")
        self.job_id = job_id
        self.reason = reason


class SyncNotConfigured(InvalidRequest):
    code = "sync_not_configured"
    status = 400

    def __init__(self) -> None:
        super().__init__("Cloud sync not configured. Set SYNC_BUCKET.")


class InvalidFilter(InvalidRequest):
    code = "invalid_filter"
    status = 400


class ConfirmationMissing(InvalidRequest):
    code = "confirmation_missing"
    status = 400

    def __init__(self, consequence: str) -> None:
        super().__init__(f"{consequence}; send confirm=true to do that")


class KeyNotUsable(InvalidRequest):
    code = "key_not_usable"
    status = 400


class VendorKeyMissing(InvalidRequest):
    code = "vendor_key_missing"
    status = 400

    def __init__(self, vendor: str) -> None:
        super().__init__(
            f"There is no key for {vendor}; set PROXY_{vendor.upper()}_API_KEY, or send the vendor's key as its client "
            "does and the key of this service as X-Souvenir-Key"
        )


class UnknownStrategy(InvalidRequest):
    code = "unknown_strategy"
    status = 400

    def __init__(self, strategy: str, reason: str) -> None:
        super().__init__(f"The import strategy {strategy!r} cannot be used: {reason}; send add or smart instead")
        self.strategy = strategy
        self.reason = reason


class LinkNotUsable(InvalidRequest):
    code = "link_not_usable"
    status = 400


class IdempotencyKeyReused(InvalidRequest):
    code = "idempotency_key_reused"

    def __init__(self) -> None:
        super().__init__("This Idempotency-Key was sent with another request before; send a new key with a new request")


class BlockTooLong(InvalidRequest):
    code = "block_too_long"

    def __init__(self, label: str, chars: int, max_chars: int) -> None:
        super().__init__(
            f"The value of block {label!r} has {chars} characters and its limit is {max_chars}; shorten it"
        )
        self.label = label
        self.chars = chars
        self.max_chars = max_chars


class PersonalDataRejected(InvalidRequest):
    """Raised for a text with data that the policy rejects. It contains no part of the text."""

    code = "personal_data_rejected"

    def __init__(self, kinds: Sequence[str]) -> None:
        super().__init__(f"The text holds {', '.join(kinds)}, which this agent's policy rejects; send it without")
        self.kinds = tuple(kinds)


class Unauthorized(SouvenirError):
    code = "unauthorized"
    status = 401


class Forbidden(SouvenirError):
    code = "forbidden"
    status = 403


class SourceForbidden(Forbidden):
    code = "source_forbidden"

    def __init__(self, source: str, *, may_not: str = "write to") -> None:
        super().__init__(f"This key may not {may_not} the source {source!r}; GET /api/keys/me lists its prefixes")
        self.source = source


class PersonForbidden(SourceForbidden):
    def __init__(self, source: str, person: str) -> None:
        Forbidden.__init__(
            self, f"{source!r} is another principal's; this key writes below person/ only to 'person/{person}'"
        )
        self.source = source


class SourceReserved(InvalidRequest):
    code = "source_reserved"

    def __init__(self, source: str, advice: str) -> None:
        super().__init__(f"{source!r} is reserved, as all of project/ and person/; {advice}")
        self.source = source


class AddressNotAllowed(InvalidRequest):
    """:param reason: A clause about the address."""

    code = "address_not_allowed"

    def __init__(self, reason: str) -> None:
        super().__init__(f"The address of the webhook cannot be used: {reason}")
        self.reason = reason


class AccessLimited(Forbidden):
    """Raised for a request that needs a level which the agent's access does not include."""

    code = "access_limited"

    def __init__(self, agent: str, missing: Sequence[str]) -> None:
        super().__init__(
            f"The access of the agent {agent!r} does not include {' and '.join(missing)}; "
            "an admin can give it with PUT /agents/NAME/access"
        )
        self.agent = agent
        self.missing = tuple(missing)


class OutsideWorkspace(Forbidden):
    code = "outside_workspace"

    def __init__(self, pattern: str) -> None:
        super().__init__(f"{pattern!r} leads out of WORKSPACE_DIR; name files below it by relative paths without ..")
        self.pattern = pattern


class HostNotAllowed(SouvenirError):
    code = "host_not_allowed"
    status = 421

    def __init__(self) -> None:
        super().__init__("This service is not known by the name in the Host header; add that name to ALLOWED_HOSTS")


class OriginNotAllowed(Forbidden):
    """Raised for a page in a browser; programs send neither Origin nor Sec-Fetch-Site."""

    code = "origin_not_allowed"

    def __init__(self) -> None:
        super().__init__("Pages of this origin may not call the service; add the origin to CORS_ORIGINS if they should")


class UnsupportedMediaType(SouvenirError):
    code = "unsupported_media_type"
    status = 415

    def __init__(self, needed: str) -> None:
        super().__init__(f"This route takes {needed}; send the header Content-Type: {needed}")
        self.needed = needed


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


class TooManyTokens(SouvenirError):
    code = "too_many_tokens"
    status = 413

    def __init__(self, max_tokens: int) -> None:
        super().__init__(
            f"The texts of one request may have {max_tokens:,} tokens together and these have more; send them in "
            "several requests, or import them as a job"
        )
        self.max_tokens = max_tokens


class Overloaded(SouvenirError):
    code = "overloaded"
    status = 429
    retry_after_s: int

    def __init__(self, message: str, *, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class TooManyAttempts(Overloaded):
    code = "too_many_attempts"

    def __init__(self, *, retry_after_s: int) -> None:
        super().__init__("Too many failed authentication attempts", retry_after_s=retry_after_s)


class QuotaExceeded(SouvenirError):
    """A quota of the caller's key is used up."""

    code = "quota_exceeded"
    status = 429
    retry_after_s: int

    def __init__(self, message: str, *, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


FREED_AFTER_S = 3600
"""Stored memories and bytes are freed by deletions, not by time; a client may look again in an hour."""


class RequestQuotaExceeded(QuotaExceeded):
    code = "quota_requests_per_minute"

    def __init__(self, limit: int, *, retry_after_s: int) -> None:
        super().__init__(
            f"This key may send {limit} requests a minute; try again in {retry_after_s} s", retry_after_s=retry_after_s
        )


class MemoryQuotaExceeded(QuotaExceeded):
    code = "quota_memories"

    def __init__(self, limit: int, stored: int) -> None:
        super().__init__(
            f"This key may store {limit} memories and stores {stored}; delete some, or ask an admin for a larger quota",
            retry_after_s=FREED_AFTER_S,
        )


class StorageQuotaExceeded(QuotaExceeded):
    code = "quota_stored_bytes"

    def __init__(self, limit: int, stored: int) -> None:
        super().__init__(
            f"This key may store {limit} bytes and stores {stored}; delete some, or ask an admin for a larger quota",
            retry_after_s=FREED_AFTER_S,
        )


class JobQuotaExceeded(QuotaExceeded):
    code = "quota_jobs_per_day"

    def __init__(self, limit: int, *, retry_after_s: int) -> None:
        super().__init__(f"This key may submit {limit} jobs a day; try again tomorrow", retry_after_s=retry_after_s)


class ExtractionQuotaExceeded(QuotaExceeded):
    code = "quota_extractions_per_day"

    def __init__(self, limit: int, *, retry_after_s: int) -> None:
        super().__init__(
            f"This key may submit {limit} extractions a day; try again tomorrow", retry_after_s=retry_after_s
        )


class ExtractQueueFull(Overloaded):
    code = "extract_queue_full"

    def __init__(self, queue_depth: int, queue_max: int, *, retry_after_s: int) -> None:
        super().__init__("Too many extractions wait; try again in a while", retry_after_s=retry_after_s)
        self.queue = {"queue_depth": queue_depth, "queue_max": queue_max}

    @property
    def detail(self) -> dict[str, Any]:
        return {"error": self.code, "message": self.message, **self.queue, "retry_after_sec": self.retry_after_s}
