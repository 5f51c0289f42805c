"""What the service answers in its section `extraction`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from souvenir_client.records.enums import JobStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffResponse:
    """What two extractions of one transcript have in common, and where they differ."""

    first: str
    second: str
    agreed: list[FactPair]
    decided_otherwise: list[FactPair]
    only_first: list[Mapping[str, Any]]
    only_second: list[Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractAccepted:
    """The transcript was taken."""

    job_id: str
    status: JobStatus
    queue_depth: int
    result_url: str
    result: ExtractResult | None = None
    messages: StoredTurns | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractJob:
    """An extraction."""

    job_id: str
    status: JobStatus
    source: str
    context: str
    message_length: int
    created_at: str
    started_at: str | None = None
    completed_at: str | None = None
    queue_depth: int | None = None
    mode: str
    auth_key_id: str | None
    trusted_authorship: bool
    result: ExtractResult | None = None
    error: str | None = None
    waits_for: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractResult:
    """What came of an extraction: of every fact an action, and counts.

    Texts are those of the ledger, as it is now. `error` says that the model failed, and nothing was changed;
    `skipped_reason` why it was not asked.
    """

    actions: list[Mapping[str, Any]] | None = None
    extracted_count: int | None = None
    stored_count: int | None = None
    updated_count: int | None = None
    deleted_count: int | None = None
    noop_count: int | None = None
    dry_run: bool | None = None
    approval: str | None = None
    removing: list[int] | None = None
    undone: bool | None = None
    undone_at: str | None = None
    result_url: str | None = None
    error: str | None = None
    error_stage: str | None = None
    error_message: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)
    """What stands beside these fields, such as the metadata of a memory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractStatus:
    """Whether transcripts are learned from, by which model, and how many wait. No model is asked for it."""

    queue_depth: int
    queue_max: int
    queue_remaining: int
    workers: int
    jobs_tracked: int
    enabled: bool
    provider: str | None
    model: str | None
    status: str
    fallback_add_enabled: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FactPair:
    first: Mapping[str, Any]
    second: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTurns:
    """What became of the transcript's turns."""

    count: int
    session_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoResponse:
    success: bool
    job_id: str
    removed: list[int]
    restored: list[int]
