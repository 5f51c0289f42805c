"""Every error that this service raises on purpose, in one tree.

    SouvenirError                    500  internal
    +- InvalidRequest                422  invalid_request     a value that cannot be used
    |  +- NothingToDo                400  nothing_to_do       a request that asks for no change
    |  +- KeyNotUsable               400  key_not_usable      an API key whose role and reach do not fit
    |  +- UnknownStrategy            400  unknown_strategy    of an import
    |  +- LinkNotUsable             400  link_not_usable     of two memories
    |  +- IdempotencyKeyReused       422  idempotency_key_reused  for another request than before
    |  +- BlockTooLong               422  block_too_long
    |  +- PersonalDataRejected       422  personal_data_rejected  names the kinds, never the text
    +- Unauthorized                  401  unauthorized
    +- Forbidden                     403  forbidden           the key may not do this
    |  +- SourceForbidden            403  source_forbidden    the key may not read or write this source
    |  +- OutsideWorkspace           403  outside_workspace   a file that does not lie in WORKSPACE_DIR
    +- HostNotAllowed                421  host_not_allowed    the request is for a name that is not ours
    +- NotFound                      404
    |  +- MemoryNotFound             404  memory_not_found
    |  +- BackupNotFound             404  backup_not_found
    |  +- KeyNotFound                404  key_not_found
    |  +- JobNotFound                404  job_not_found
    |  +- AgentNotFound              404  agent_not_found
    |  +- UserNotFound               404  user_not_found
    |  +- SessionNotFound            404  session_not_found
    |  +- MessageNotFound            404  message_not_found
    |  +- BlockNotFound              404  block_not_found
    |  +- PreferenceNotFound         404  preference_not_found
    +- Conflict                      409
    |  +- MemoryPinned               409  memory_pinned
    |  +- MemoryArchived             409  memory_archived
    |  +- KeyTaken                   409  key_taken
    |  +- BlockExists                409  block_exists
    |  +- BlockReadOnly              409  block_read_only
    |  +- SessionEnded               409  session_ended
    |  +- UndoBlocked                409  undo_blocked        something newer stands on what a job wrote
    +- BlockChanged                  412  block_changed       it is not the version that If-Match names
    +- BodyTooSlow                   408  body_too_slow
    +- PayloadTooLarge               413  payload_too_large
    +- Overloaded                    429  overloaded          carries retry_after_s
    |  +- TooManyAttempts            429  too_many_attempts   wrong keys from one address
    |  +- ExtractQueueFull           429  extract_queue_full  its detail is an object
    +- ExtractionNotConfigured       501  extraction_not_configured
    +- Unavailable                   503
       +- EmbeddingUnavailable       503  embedding_unavailable
       +- SearchUnavailable          503  search_unavailable
       +- RerankingUnavailable       503  reranking_unavailable  the service refuses to start
       +- JobFailed                  503  job_failed          its sentence is the job's
       +- LLMError                   503  llm_failed          a language model gave nothing that can be used
       |  +- LLMUnavailable          503  llm_unavailable     may be tried later; carries retry_after_s
       |  +- LLMRejected             503  llm_rejected        the settings have to be corrected
       |  +- LLMRefused              503  llm_refused         the model declined
       |  +- LLMOutputUnusable       503  llm_output_unusable
       +- DeadlineExceeded           503  deadline_exceeded   carries retry_after_s
       +- ServiceClosing             503  service_closing     carries retry_after_s
       +- TooManyConnections         503  too_many_connections  carries retry_after_s
       +- PrivacyRulesUnusable       503  privacy_rules_unusable  the service refuses to start
       +- StoreUnusable              503  store_unusable      the service refuses to start
          +- BackupDamaged           503  backup_damaged      the present store is left as it was

A message is one sentence that says what to do; the HTTP boundary sends it, or `detail` where that is more, with `code`.
Errors of libraries are wrapped with `raise ... from`, never shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
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


class InvalidRequest(SouvenirError):
    code = "invalid_request"
    status = 422


class NothingToDo(InvalidRequest):
    code = "nothing_to_do"
    status = 400


class KeyNotUsable(InvalidRequest):
    code = "key_not_usable"
    status = 400


class UnknownStrategy(InvalidRequest):
    code = "unknown_strategy"
    status = 400

    def __init__(self, strategy: str, reason: str) -> None:
        super().__init__(f"The import strategy {strategy!r} cannot be used: {reason}; send add or smart")
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
    """A text that holds what the policy does not let in. It carries no part of the text."""

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


class NotFound(SouvenirError):
    code = "not_found"
    status = 404


class MemoryNotFound(NotFound):
    code = "memory_not_found"

    def __init__(self, memory_id: int) -> None:
        super().__init__(f"Memory ID {memory_id} not found")
        self.memory_id = memory_id


class BackupNotFound(NotFound):
    code = "backup_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"Backup {name!r} not found; GET /backups lists those that exist")
        self.name = name


class KeyNotFound(NotFound):
    code = "key_not_found"

    def __init__(self, key_id: str) -> None:
        super().__init__(f"API key {key_id!r} not found; GET /api/keys lists those that exist")
        self.key_id = key_id


class JobNotFound(NotFound):
    code = "job_not_found"

    def __init__(self, job_id: str) -> None:
        super().__init__(f"Job {job_id!r} not found; GET /jobs lists those that exist")
        self.job_id = job_id


class AgentNotFound(NotFound):
    code = "agent_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"Agent {name!r} not found; make it with POST /agents")
        self.name = name


class UserNotFound(NotFound):
    code = "user_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"User {name!r} not found; GET /agents/NAME/users lists those that exist")
        self.name = name


class SessionNotFound(NotFound):
    code = "session_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"Session {name!r} not found; GET /sessions/AGENT lists those that exist")
        self.name = name


class MessageNotFound(NotFound):
    code = "message_not_found"

    def __init__(self, uid: str) -> None:
        super().__init__(f"Message {uid!r} not found; GET /messages/AGENT lists those that exist")
        self.uid = uid


class BlockNotFound(NotFound):
    code = "block_not_found"

    def __init__(self, label: str) -> None:
        super().__init__(f"Block {label!r} not found; GET /memory-blocks/AGENT lists those that exist")
        self.label = label


class PreferenceNotFound(NotFound):
    code = "preference_not_found"

    def __init__(self, key: str) -> None:
        super().__init__(f"Preference {key!r} not found; GET /preferences/AGENT lists those that exist")
        self.key = key


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


class ExtractionNotConfigured(SouvenirError):
    code = "extraction_not_configured"
    status = 501

    def __init__(self) -> None:
        super().__init__("Extraction not configured. Set EXTRACT_PROVIDER env var.")


class Unavailable(SouvenirError):
    code = "unavailable"
    status = 503


class EmbeddingUnavailable(Unavailable):
    code = "embedding_unavailable"


class SearchUnavailable(Unavailable):
    code = "search_unavailable"


class RerankingUnavailable(Unavailable):
    """The cross-encoder cannot be used. Searches do without it: no request ends in this."""

    code = "reranking_unavailable"


class JobFailed(Unavailable):
    code = "job_failed"

    def __init__(self, job_id: str, reason: str) -> None:
        super().__init__(f"Job {job_id!r} failed: {reason}")
        self.job_id = job_id
        self.reason = reason


class LLMError(Unavailable):
    """No message below holds a part of a prompt, an answer or a key."""

    code = "llm_failed"


class LLMUnavailable(LLMError):
    code = "llm_unavailable"

    def __init__(self, message: str, *, retry_after_s: int = 1) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class LLMRejected(LLMError):
    code = "llm_rejected"


class LLMRefused(LLMError):
    code = "llm_refused"


class LLMOutputUnusable(LLMError):
    """`raw` is what the model wrote last: never shown, never logged."""

    code = "llm_output_unusable"

    def __init__(self, raw: str, reason: str) -> None:
        super().__init__(f"The language model's answer cannot be used: {reason}; try again, or set another model")
        self.raw = raw
        self.reason = reason


class DeadlineExceeded(Unavailable):
    code = "deadline_exceeded"

    def __init__(self, timeout_s: float, *, retry_after_s: int = 1) -> None:
        super().__init__(f"The request took longer than {timeout_s:g} s; try again in a moment, or ask for less")
        self.timeout_s = timeout_s
        self.retry_after_s = retry_after_s


class ServiceClosing(Unavailable):
    code = "service_closing"
    retry_after_s = 5
    """A restart takes about that long."""

    def __init__(self) -> None:
        super().__init__("The service is shutting down; try again when it is back")


class TooManyConnections(Unavailable):
    code = "too_many_connections"
    retry_after_s = 1

    def __init__(self, max_connections: int) -> None:
        super().__init__(f"More than {max_connections} connections are open; close some, and try again in a moment")
        self.max_connections = max_connections


class PrivacyRulesUnusable(Unavailable):
    """The file that PRIVACY_CONFIG names cannot be used; the service does not start without its rules."""

    code = "privacy_rules_unusable"

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"The privacy rules in {path} cannot be used: {reason}")
        self.path = path
        self.reason = reason


class StoreUnusable(Unavailable):
    """The database cannot be read, or is not ours to read; the service does not start on it."""

    code = "store_unusable"


class BackupDamaged(StoreUnusable):
    code = "backup_damaged"

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(f"Backup {name!r} cannot be restored: {reason}; nothing was changed, restore another one")
        self.name = name
        self.reason = reason
