"""Errors of a service that cannot answer now or is not configured to, including those of language models."""

from __future__ import annotations

from pathlib import Path

from souvenir.core.errors.base import SouvenirError


class ExtractionNotConfigured(SouvenirError):
    code = "extraction_not_configured"
    status = 501

    def __init__(self) -> None:
        super().__init__("Extraction not configured. Set EXTRACT_PROVIDER env var.")


class NotOffered(SouvenirError):
    """Raised for what clients of another system ask for and this service does not have."""

    code = "not_offered"
    status = 501


class NotOfDatabase(SouvenirError):
    """Raised for what a database in PostgreSQL leaves to its own tools."""

    code = "not_of_this_database"
    status = 501


class ModelUnreachable(SouvenirError):
    """Raised by the proxy if it gets no answer from a vendor."""

    code = "model_unreachable"
    status = 502

    def __init__(self, vendor: str, reason: str) -> None:
        super().__init__(f"{vendor} did not answer ({reason}); check {vendor.upper()}_BASE_URL, and try again")


class Unavailable(SouvenirError):
    code = "unavailable"
    status = 503


class DatabaseUnavailable(Unavailable):
    """Raised if the database in PostgreSQL cannot be used now, as during a failover."""

    code = "database_unavailable"

    def __init__(self, message: str, *, retry_after_s: int | None = 2) -> None:
        """:param retry_after_s: None if the request must not be repeated as it is."""
        super().__init__(message)
        self.retry_after_s = retry_after_s


class AuthorizationServerUnavailable(Unavailable):
    """Raised if the public keys of the authorization server cannot be read, so that no access token can be checked."""

    def __init__(self, *, retry_after_s: int) -> None:
        super().__init__("The authorization server does not tell its keys; try again later, or send an API key")
        self.retry_after_s = retry_after_s


class ModelReplaced(DatabaseUnavailable):
    """Raised by a replica until it serves with the embedding model that another one changed the database to."""

    def __init__(
        self, message: str = "Another replica changed the embedding model, and this one loads it; try again in a moment"
    ) -> None:
        super().__init__(message)


class DiskFull(Unavailable):
    code = "disk_full"


class EmbeddingUnavailable(Unavailable):
    code = "embedding_unavailable"


class SearchUnavailable(Unavailable):
    code = "search_unavailable"


class RerankingUnavailable(Unavailable):
    """Raised if the cross-encoder cannot be used at the start. Later, searches continue without it."""

    code = "reranking_unavailable"


class JobFailed(Unavailable):
    code = "job_failed"

    def __init__(self, job_id: str, reason: str) -> None:
        super().__init__(f"Job {job_id!r} failed: {reason}")
        self.job_id = job_id
        self.reason = reason


class DeadlineExceeded(Unavailable):
    code = "deadline_exceeded"
    retry_after_s: int

    def __init__(self, timeout_s: float, *, retry_after_s: int = 1) -> None:
        super().__init__(f"The request took longer than {timeout_s:g} s; try again in a moment, or ask for less")
        self.timeout_s = timeout_s
        self.retry_after_s = retry_after_s


class ServiceClosing(Unavailable):
    code = "service_closing"
    retry_after_s: int = 5
    """A restart takes about this long."""

    def __init__(self) -> None:
        super().__init__("The service is shutting down; try again when it is back")


class TooManyConnections(Unavailable):
    code = "too_many_connections"
    retry_after_s: int = 1

    def __init__(self, max_connections: int) -> None:
        super().__init__(f"More than {max_connections} connections are open; close some, and try again in a moment")
        self.max_connections = max_connections


class TooManyStreams(Unavailable):
    code = "too_many_streams"
    retry_after_s: int = 5

    def __init__(self, max_streams: int) -> None:
        super().__init__(f"{max_streams} event streams are open; use GET /events/recent, or try again in a moment")
        self.max_streams = max_streams


class PrivacyRulesUnusable(Unavailable):
    """Raised if the file in PRIVACY_CONFIG cannot be used; the service does not start without its rules."""

    code = "privacy_rules_unusable"

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"The privacy rules in {path} cannot be used: {reason}")
        self.path = path
        self.reason = reason


class SavedSettingsUnusable(Unavailable):
    """Raised if the file in CONFIG_FILE cannot be used; the service does not start without its settings."""

    code = "saved_settings_unusable"

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"The saved settings in {path} cannot be used: {reason}")
        self.path = path
        self.reason = reason


class StoreUnusable(Unavailable):
    """Raised if the database is unreadable or belongs to another program; the service does not start on it."""

    code = "store_unusable"


class BackupDamaged(StoreUnusable):
    code = "backup_damaged"

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"Backup {name!r} cannot be restored: {reason}; nothing was changed, restore another one")
        self.name = name
        self.reason = reason


class SyncUnavailable(Unavailable):
    """Raised if the bucket cannot be reached or used. No message contains a key or what the store answered."""

    code = "sync_unavailable"


class RemoteBackupUnusable(Unavailable):
    """Raised for a backup in the bucket that must not be used; nothing of it is kept."""

    code = "remote_backup_unusable"

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"The backup {name!r} in the bucket cannot be used: {reason}")
        self.name = name
        self.reason = reason


class LLMError(Unavailable):
    """No message of these errors contains a part of a prompt, an answer or a key.

    Requests before the failure were paid for: `attempts` is their number, followed by their tokens and their cost in
    dollars, None if that is unknown.
    """

    code = "llm_failed"
    attempts: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0


class LLMUnavailable(LLMError):
    code = "llm_unavailable"
    retry_after_s: int

    def __init__(self, message: str, *, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class LLMRejected(LLMError):
    code = "llm_rejected"


class LLMPromptTooLong(LLMRejected):
    """Raised for this prompt only: the model may answer shorter ones."""

    code = "llm_prompt_too_long"


class LLMRefused(LLMError):
    code = "llm_refused"


class LLMOutputUnusable(LLMError):
    """`raw` is the model's last output, which is never shown or logged."""

    code = "llm_output_unusable"

    def __init__(self, raw: str, reason: str) -> None:
        super().__init__(f"The language model's answer cannot be used: {reason}; try again, or set another model")
        self.raw = raw
        self.reason = reason
