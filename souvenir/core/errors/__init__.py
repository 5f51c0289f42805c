"""All errors that this service raises on purpose, in one tree.

    SouvenirError                    500  internal
    +- RecordUnreadable              500  record_unreadable   stored bytes that changed on disk
    |  +- MemoryUnreadable           500  memory_unreadable
    |  +- MessageUnreadable          500  message_unreadable
    |  +- BlockUnreadable            500  block_unreadable
    +- InvalidRequest                422  invalid_request     a value that cannot be used
    |  +- NothingToDo                400  nothing_to_do       a request that asks for no change
    |  +- InvalidFilter              400  invalid_filter
    |  +- SyncNotConfigured          400  sync_not_configured
    |  +- ConfirmationMissing        400  confirmation_missing  for a request that replaces data
    |  +- KeyNotUsable               400  key_not_usable      an API key whose role and reach do not fit
    |  +- VendorKeyMissing          400  vendor_key_missing  of a proxied call
    |  +- UnknownStrategy            400  unknown_strategy    of an import
    |  +- LinkNotUsable             400  link_not_usable     of two memories
    |  +- IdempotencyKeyReused       422  idempotency_key_reused  for another request than before
    |  +- AddressNotAllowed          422  address_not_allowed  of a webhook
    |  +- SourceReserved             422  source_reserved     project/ and person/, where they cannot be written so
    |  +- BlockTooLong               422  block_too_long
    |  +- JobRefused                 422  job_refused         the message is the job's
    |  +- PersonalDataRejected       422  personal_data_rejected  names the kinds, never the text
    +- Unauthorized                  401  unauthorized
    +- Forbidden                     403  forbidden           the key may not do this
    |  +- SourceForbidden            403  source_forbidden    the key may not read or write this source
    |  |  +- PersonForbidden         403  source_forbidden    another principal's part of person/
    |  +- AccessLimited              403  access_limited      the agent's access does not include this
    |  +- OutsideWorkspace           403  outside_workspace   a file that does not lie in WORKSPACE_DIR
    |  +- OriginNotAllowed           403  origin_not_allowed  a browser's page of another origin
    +- HostNotAllowed                421  host_not_allowed    the Host header names another server
    +- NotFound                      404
    |  +- MemoryNotFound             404  memory_not_found
    |  +- FactNotFound               404  fact_not_found
    |  +- TagNotFound                404  tag_not_found
    |  +- FeedbackNotFound           404  feedback_not_found
    |  +- FolderNotFound             404  folder_not_found    no source in this folder
    |  +- WebhookNotFound            404  webhook_not_found
    |  +- EntityNotFound             404  entity_not_found    of the knowledge graph
    |  +- BackupNotFound             404  backup_not_found
    |  +- RemoteBackupNotFound       404  remote_backup_not_found
    |  +- KeyNotFound                404  key_not_found
    |  +- JobNotFound                404  job_not_found
    |  +- AgentNotFound              404  agent_not_found
    |  +- UserNotFound               404  user_not_found
    |  +- SessionNotFound            404  session_not_found
    |  +- MessageNotFound            404  message_not_found
    |  +- ConceptNotFound            404  concept_not_found
    |  +- TopicNotFound              404  topic_not_found
    |  +- BlockNotFound              404  block_not_found
    |  +- PreferenceNotFound         404  preference_not_found
    +- Conflict                      409
    |  +- MemoryPinned               409  memory_pinned
    |  +- MemoryArchived             409  memory_archived
    |  +- KeyTaken                   409  key_taken
    |  +- BlockExists                409  block_exists
    |  +- BlockReadOnly              409  block_read_only
    |  +- SessionEnded               409  session_ended
    |  +- UndoBlocked                409  undo_blocked        later changes depend on what a job wrote
    +- BlockChanged                  412  block_changed       the version differs from that in If-Match
    +- MemoryChanged                 412  memory_changed      the last change differs from that in If-Match
    +- BodyTooSlow                   408  body_too_slow
    +- PayloadTooLarge               413  payload_too_large
    +- TooManyTokens                 413  too_many_tokens     more to embed than one request may
    +- UnsupportedMediaType          415  unsupported_media_type  the Content-Type that an import needs
    +- Overloaded                    429  overloaded          carries retry_after_s
    |  +- TooManyAttempts            429  too_many_attempts   wrong keys from one address
    |  +- ExtractQueueFull           429  extract_queue_full  its detail is an object
    +- QuotaExceeded                 429  quota_exceeded      carries retry_after_s
    |  +- RequestQuotaExceeded       429  quota_requests_per_minute
    |  +- MemoryQuotaExceeded        429  quota_memories
    |  +- StorageQuotaExceeded       429  quota_stored_bytes
    |  +- JobQuotaExceeded           429  quota_jobs_per_day
    |  +- ExtractionQuotaExceeded    429  quota_extractions_per_day
    +- ExtractionNotConfigured       501  extraction_not_configured
    +- NotOffered                    501  not_offered         clients of another system ask for it
    +- ModelUnreachable              502  model_unreachable   a vendor does not answer the proxy
    +- Unavailable                   503
       +- AuthorizationServerUnavailable 503  unavailable    carries retry_after_s
       +- DatabaseUnavailable        503  database_unavailable  carries retry_after_s
       |  +- ModelReplaced           503  database_unavailable  another replica changed the embedding model
       +- DiskFull                   503  disk_full           deletions still work
       +- EmbeddingUnavailable       503  embedding_unavailable
       +- SearchUnavailable          503  search_unavailable
       +- RerankingUnavailable       503  reranking_unavailable  the service refuses to start
       +- JobFailed                  503  job_failed          the message is the job's
       +- SyncUnavailable            503  sync_unavailable    the bucket cannot be reached or used
       +- RemoteBackupUnusable       503  remote_backup_unusable  its content or its passphrase
       +- LLMError                   503  llm_failed          a language model gave no usable answer
       |  +- LLMUnavailable          503  llm_unavailable     may be retried later; carries retry_after_s
       |  +- LLMRejected             503  llm_rejected        the settings have to be corrected
       |  |  +- LLMPromptTooLong     503  llm_prompt_too_long  shorter prompts may succeed
       |  +- LLMRefused              503  llm_refused         the model declined
       |  +- LLMOutputUnusable       503  llm_output_unusable
       +- DeadlineExceeded           503  deadline_exceeded   carries retry_after_s
       +- ServiceClosing             503  service_closing     carries retry_after_s
       +- TooManyConnections         503  too_many_connections  carries retry_after_s
       +- TooManyStreams             503  too_many_streams      carries retry_after_s
       +- PrivacyRulesUnusable       503  privacy_rules_unusable  the service refuses to start
       +- SavedSettingsUnusable      503  saved_settings_unusable  the service refuses to start
       +- StoreUnusable              503  store_unusable      the service refuses to start
          +- BackupDamaged           503  backup_damaged      the current store is unchanged

A message is one sentence that says what to do; the HTTP boundary sends it, or `detail` if that has more, with `code`.
Errors of libraries are wrapped with `raise ... from`, never shown.
"""

from __future__ import annotations

from souvenir.core.errors.base import SouvenirError
from souvenir.core.errors.conflicts import (
    BlockChanged,
    BlockExists,
    BlockReadOnly,
    Conflict,
    KeyTaken,
    MemoryArchived,
    MemoryChanged,
    MemoryPinned,
    SessionEnded,
    UndoBlocked,
)
from souvenir.core.errors.damaged import (
    BlockUnreadable,
    MemoryUnreadable,
    MessageUnreadable,
    RecordUnreadable,
)
from souvenir.core.errors.missing import (
    AgentNotFound,
    BackupNotFound,
    BlockNotFound,
    ConceptNotFound,
    EntityNotFound,
    FactNotFound,
    FeedbackNotFound,
    FolderNotFound,
    JobNotFound,
    KeyNotFound,
    MemoryNotFound,
    MessageNotFound,
    NotFound,
    PreferenceNotFound,
    RemoteBackupNotFound,
    SessionNotFound,
    TagNotFound,
    TopicNotFound,
    UserNotFound,
    WebhookNotFound,
)
from souvenir.core.errors.requests import (
    AccessLimited,
    AddressNotAllowed,
    BlockTooLong,
    BodyTooSlow,
    ConfirmationMissing,
    ExtractionQuotaExceeded,
    ExtractQueueFull,
    Forbidden,
    HostNotAllowed,
    IdempotencyKeyReused,
    InvalidFilter,
    InvalidRequest,
    JobQuotaExceeded,
    JobRefused,
    KeyNotUsable,
    LinkNotUsable,
    MemoryQuotaExceeded,
    NothingToDo,
    OriginNotAllowed,
    OutsideWorkspace,
    Overloaded,
    PayloadTooLarge,
    PersonalDataRejected,
    PersonForbidden,
    QuotaExceeded,
    RequestQuotaExceeded,
    SourceForbidden,
    SourceReserved,
    StorageQuotaExceeded,
    SyncNotConfigured,
    TooManyAttempts,
    TooManyTokens,
    Unauthorized,
    UnknownStrategy,
    UnsupportedMediaType,
    VendorKeyMissing,
)
from souvenir.core.errors.unavailable import (
    AuthorizationServerUnavailable,
    BackupDamaged,
    DatabaseUnavailable,
    DeadlineExceeded,
    DiskFull,
    EmbeddingUnavailable,
    ExtractionNotConfigured,
    JobFailed,
    LLMError,
    LLMOutputUnusable,
    LLMPromptTooLong,
    LLMRefused,
    LLMRejected,
    LLMUnavailable,
    ModelReplaced,
    ModelUnreachable,
    NotOfDatabase,
    NotOffered,
    PrivacyRulesUnusable,
    RemoteBackupUnusable,
    RerankingUnavailable,
    SavedSettingsUnusable,
    SearchUnavailable,
    ServiceClosing,
    StoreUnusable,
    SyncUnavailable,
    TooManyConnections,
    TooManyStreams,
    Unavailable,
)

__all__ = [
    "AccessLimited",
    "AddressNotAllowed",
    "AgentNotFound",
    "AuthorizationServerUnavailable",
    "BackupDamaged",
    "BackupNotFound",
    "BlockChanged",
    "BlockExists",
    "BlockNotFound",
    "BlockReadOnly",
    "BlockTooLong",
    "BlockUnreadable",
    "BodyTooSlow",
    "ConceptNotFound",
    "ConfirmationMissing",
    "Conflict",
    "DatabaseUnavailable",
    "DeadlineExceeded",
    "DiskFull",
    "EmbeddingUnavailable",
    "EntityNotFound",
    "ExtractQueueFull",
    "ExtractionNotConfigured",
    "ExtractionQuotaExceeded",
    "FactNotFound",
    "FeedbackNotFound",
    "FolderNotFound",
    "Forbidden",
    "HostNotAllowed",
    "IdempotencyKeyReused",
    "InvalidFilter",
    "InvalidRequest",
    "JobFailed",
    "JobNotFound",
    "JobQuotaExceeded",
    "JobRefused",
    "KeyNotFound",
    "KeyNotUsable",
    "KeyTaken",
    "LLMError",
    "LLMOutputUnusable",
    "LLMPromptTooLong",
    "LLMRefused",
    "LLMRejected",
    "LLMUnavailable",
    "LinkNotUsable",
    "MemoryArchived",
    "MemoryChanged",
    "MemoryNotFound",
    "MemoryPinned",
    "MemoryQuotaExceeded",
    "MemoryUnreadable",
    "MessageNotFound",
    "MessageUnreadable",
    "ModelReplaced",
    "ModelUnreachable",
    "NotFound",
    "NotOfDatabase",
    "NotOffered",
    "NothingToDo",
    "OriginNotAllowed",
    "OutsideWorkspace",
    "Overloaded",
    "PayloadTooLarge",
    "PersonForbidden",
    "PersonalDataRejected",
    "PreferenceNotFound",
    "PrivacyRulesUnusable",
    "QuotaExceeded",
    "RecordUnreadable",
    "RemoteBackupNotFound",
    "RemoteBackupUnusable",
    "RequestQuotaExceeded",
    "RerankingUnavailable",
    "SavedSettingsUnusable",
    "SearchUnavailable",
    "ServiceClosing",
    "SessionEnded",
    "SessionNotFound",
    "SourceForbidden",
    "SourceReserved",
    "SouvenirError",
    "StorageQuotaExceeded",
    "StoreUnusable",
    "SyncNotConfigured",
    "SyncUnavailable",
    "TagNotFound",
    "TooManyAttempts",
    "TooManyConnections",
    "TooManyStreams",
    "TooManyTokens",
    "TopicNotFound",
    "Unauthorized",
    "Unavailable",
    "UndoBlocked",
    "UnknownStrategy",
    "UnsupportedMediaType",
    "UserNotFound",
    "VendorKeyMissing",
    "WebhookNotFound",
]
