"""What the routes of extraction take and answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from llm_extract import Extraction, ExtractionRequest
from llm_provider import LLMProvider
from souvenir.access.door import ANONYMOUS
from souvenir.api.conversation_fields import SessionId, UserName
from souvenir.api.errors import error_responses
from souvenir.api.fields import Clean, Moment, OptionalSource, optional_wire_time, wire_time
from souvenir.extraction.results import MODE, SHORT_ID_CHARS
from souvenir.jobs.worker import JobFigures
from souvenir.settings import Settings
from souvenir.store.extractions import Extraction as ExtractionRow
from souvenir.store.jobs import Job, JobStatus
from souvenir.store.keys import KEY_ACTOR
from souvenir.store.messages import Message

MAX_ACTIONS = 1_000
"""In one commit; more than a job decides."""

JOB_ID = "0d7f6a3c5b2e4f1a9c8d7e6f5a4b3c2d"
OTHER_JOB_ID = "7b1e0c9d4f2a4e3b8c6d5a7f9e8b1c20"
_AT = "2025-04-02T09:30:00.000000+00:00"
_TEXT = "The billing service moves to Postgres 17 in May."

_ADDED: dict[str, Any] = {
    "action": "add",
    "text": _TEXT,
    "fact": {
        "text": _TEXT,
        "category": "DECISION",
        "origin_class": "user",
        "span": [6, 54],
        "speaker": None,
        "event_at": "2025-04-02T00:00:00+00:00",
    },
    "reason": "It is new.",
    "decided_by": "model",
    "prompt": "decide@1",
    "id": 12,
    "job_id": JOB_ID,
    "ordinal": 0,
}
RESULT_EXAMPLE: dict[str, Any] = {
    "actions": [_ADDED],
    "extracted_count": 1,
    "stored_count": 1,
    "updated_count": 0,
    "deleted_count": 0,
    "conflict_count": 0,
    "noop_count": 0,
    "fallback_count": 0,
    "gated_count": 0,
    "tokens": {"extract": {"input": 812, "output": 64}, "audn": {"input": 540, "output": 38}},
    "job_id": JOB_ID[:SHORT_ID_CHARS],
    "result_url": f"/memory/extract/{JOB_ID}",
    "links_created": [],
    "compaction_candidates": [],
}

Context = Annotated[str, StringConstraints(max_length=100), Clean]
ModelName = Annotated[str, StringConstraints(min_length=1, max_length=200), Clean]


class ExtractRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "messages": "User: We decided to move billing to Postgres 17 in May.\nAssistant: Noted.",
                    "source": "claude-code/billing",
                    "document_at": "2025-04-02",
                }
            ]
        }
    )

    messages: Annotated[str, StringConstraints(min_length=1), Clean] = Field(
        description="The transcript, in plain text with a speaker before each turn or as JSON; at most "
        "MAX_EXTRACT_MESSAGE_CHARS (120,000) characters."
    )
    source: OptionalSource = Field(
        default="",
        description="Where facts are stored; memories of this source and below are compared and changed, no others. "
        "Empty: all of the namespace, and what is new goes to `extract`. A key for some sources has to send one.",
    )
    context: Context = Field(
        default="stop",
        description="When it is asked for: `stop`, `session_end`, or `pre_compact`, which takes more. Anything goes.",
    )
    debug: bool = Field(default=False, description="Say in the result what the model was asked and what it cost.")
    dry_run: bool = Field(
        default=False, description="Decide, and change nothing; `/memory/extract/commit` does what is chosen of it."
    )
    document_at: Moment | None = Field(
        default=None, description="When it was said, as far as the transcript does not say so itself."
    )
    store_messages: bool = Field(
        default=False,
        description="Store its turns as messages of the namespace's agent too, in the same transaction: they are "
        "found at once. Needs a key of the whole namespace.",
    )
    session: SessionId | None = Field(
        default=None,
        description="The conversation's session, with which what is learned is forgotten; that of the stored messages, "
        "a new one if unset.",
    )
    user: UserName | None = Field(
        default=None,
        description="Whom the agent talks with, else whom the session is with; what is learned is forgotten with them.",
    )

    def to_request(self, session: str | None) -> ExtractionRequest:
        """:param session: Of its messages, where they are stored."""
        return ExtractionRequest(
            self.messages,
            self.source,
            self.context,
            self.dry_run,
            self.debug,
            self.document_at,
            self.user,
            session,
        )


class StoredTurns(BaseModel):
    """What became of the transcript's turns."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"count": 2, "session_id": "2025-04-02"}]})

    count: int = Field(description="Messages that were stored.")
    session_id: str | None = Field(description="Their session; null if there was nothing to store.")

    @classmethod
    def of(cls, messages: Sequence[Message]) -> StoredTurns:
        return cls(count=len(messages), session_id=messages[0].session_id if messages else None)


class ExtractResult(BaseModel):
    """What came of an extraction: of every fact an action, and counts. Texts are those of the ledger, as it is now.

    `error` says that the model failed, and nothing was changed; `skipped_reason` why it was not asked.
    """

    model_config = ConfigDict(extra="allow", json_schema_extra={"examples": [RESULT_EXAMPLE]})

    actions: list[dict[str, Any]] = Field(
        default_factory=list,
        description="`action` is `add`, `update`, `delete`, `noop`, `conflict`, `fallback_add`, `skipped` or `error`.",
    )
    extracted_count: int = Field(default=0, description="Facts that were found.")
    stored_count: int = Field(default=0, description="Memories that were added.")
    updated_count: int = Field(default=0, description="Memories that another took the place of.")
    deleted_count: int = Field(default=0, description="Memories that were archived.")
    noop_count: int = Field(default=0, description="Facts that a memory said already.")
    dry_run: bool | None = Field(
        default=None, description="True: nothing was changed, and the counts say what would be."
    )
    approval: str | None = Field(
        default=None,
        description="`required`: nothing was changed, since more would be deleted than may be, or since what was "
        "approved had to be decided anew.",
    )
    removing: list[int] | None = Field(
        default=None,
        description="The ordinals of actions that would remove a memory: if it waits for an approval, and of a dry run "
        "with more of them than EXTRACT_MAX_DELETES.",
    )
    undone: bool | None = Field(default=None, description="True: it was taken back; actions and counts are as before.")
    undone_at: str | None = Field(default=None, description="When.")
    result_url: str | None = Field(
        default=None, description="Shows it, with its whole id; `/undo` behind it takes it back. `job_id` is short."
    )
    error: str | None = Field(default=None, description="`provider_runtime_failure`: nothing was changed.")
    error_stage: str | None = None
    error_message: str | None = None

    @classmethod
    def of(cls, job: Job, extraction: Extraction) -> Self:
        """Of a job that is completed."""
        return cls.model_validate(extraction.result_of(job))


class ExtractAccepted(BaseModel):
    """The transcript was taken."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {"job_id": JOB_ID, "status": "queued", "queue_depth": 1, "result_url": f"/memory/extract/{JOB_ID}"}
            ]
        }
    )

    job_id: str
    status: JobStatus = Field(description="`queued`; where no model is asked, `completed` if it was done at once.")
    queue_depth: int = Field(description="Extractions that wait, of all namespaces.")
    result_url: str = Field(description="Says how far it is, and its result in the end.")
    result: ExtractResult | None = Field(default=None, description="If it is completed.")
    messages: StoredTurns | None = Field(default=None, description="If `store_messages` was asked for.")

    @classmethod
    def of(cls, job: Job, messages: Sequence[Message] | None, extraction: Extraction) -> ExtractAccepted:
        more: dict[str, Any] = {} if messages is None else {"messages": StoredTurns.of(messages)}
        if (result := extraction.result_of(job)) is not None:
            more["result"] = ExtractResult.model_validate(result)
        return cls(
            job_id=job.id,
            status=job.status,
            queue_depth=extraction.jobs.waiting,
            result_url=f"/memory/extract/{job.id}",
            **more,
        )


class ExtractJob(BaseModel):
    """An extraction."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "job_id": JOB_ID,
                    "status": "completed",
                    "source": "claude-code/billing",
                    "context": "stop",
                    "message_length": 84,
                    "created_at": _AT,
                    "started_at": _AT,
                    "completed_at": "2025-04-02T09:30:04.120000+00:00",
                    "mode": "llm",
                    "auth_key_id": None,
                    "trusted_authorship": True,
                    "result": RESULT_EXAMPLE,
                }
            ]
        }
    )

    job_id: str
    status: JobStatus
    source: str
    context: str
    message_length: int = Field(description="Characters of the transcript as it was sent.")
    created_at: str
    started_at: str | None = Field(default=None, description="Once it has begun.")
    completed_at: str | None = Field(default=None, description="Once it has ended.")
    queue_depth: int | None = Field(default=None, description="Extractions that wait, while it waits.")
    mode: str = Field(description="`llm`, or `fallback_add` where no model is asked.")
    auth_key_id: str | None = Field(description="The id of the key that asked; null for API_KEY and without a key.")
    trusted_authorship: bool = Field(description="Whether it was asked with a key.")
    result: ExtractResult | None = Field(default=None, description="Once it is completed.")
    error: str | None = Field(default=None, description="Why it failed, in a sentence.")
    waits_for: str | None = Field(default=None, description="Why it is tried again, while it is not finished.")

    @classmethod
    def of(cls, job: Job, row: ExtractionRow, extraction: Extraction) -> ExtractJob:
        more: dict[str, Any] = {
            "started_at": optional_wire_time(job.started_at),
            "completed_at": optional_wire_time(job.finished_at),
            "queue_depth": extraction.jobs.waiting if job.status is JobStatus.QUEUED else None,
            "result": extraction.result_of(job),
            "error": job.failure,
            "waits_for": job.waits_for,
        }
        key_id = job.actor.removeprefix(KEY_ACTOR)
        return cls(
            job_id=job.id,
            status=job.status,
            source=row.source,
            context=row.context,
            message_length=row.message_length,
            created_at=wire_time(job.created_at),
            mode=row.options[MODE],
            auth_key_id=None if key_id == job.actor else key_id,
            trusted_authorship=job.actor != ANONYMOUS,
            **{name: value for name, value in more.items() if value is not None},
        )


class ExtractFigures(BaseModel):
    """Extractions of all namespaces."""

    queue_depth: int = Field(description="That wait.")
    queue_max: int = Field(description="That may wait.")
    queue_remaining: int
    workers: int = Field(description="That are worked on at once, at most.")
    jobs_tracked: int = Field(description="That can be looked at, by the caller where one asks for the status.")

    @classmethod
    def of(cls, figures: JobFigures, **more: Any) -> Self:
        return cls(
            queue_depth=figures.waiting,
            queue_max=figures.waiting_max,
            queue_remaining=max(0, figures.waiting_max - figures.waiting),
            workers=figures.workers,
            jobs_tracked=figures.kept,
            **more,
        )


class ExtractStatus(ExtractFigures):
    """Whether transcripts are learned from, by which model, and how many wait. No model is asked for it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "enabled": True,
                    "provider": "ollama",
                    "model": "llama3.1",
                    "status": "healthy",
                    "queue_depth": 0,
                    "queue_max": 32,
                    "queue_remaining": 32,
                    "workers": 2,
                    "jobs_tracked": 12,
                    "fallback_add_enabled": False,
                }
            ]
        }
    )

    enabled: bool = Field(description="Whether a language model is set up.")
    provider: str | None
    model: str | None
    status: str = Field(description="`healthy`, `disabled`, `unhealthy` if it failed of late, or `error: ` and why.")
    fallback_add_enabled: bool = Field(description="Whether sentences are stored where no model is set up.")

    @classmethod
    def now(cls, extraction: Extraction, provider: LLMProvider | None, settings: Settings, tracked: int) -> Self:
        """:param tracked: Extractions that the caller may look at."""
        return cls.of(
            replace(extraction.jobs.figures, kept=tracked),
            enabled=provider is not None,
            provider=None if provider is None else provider.name,
            model=None if provider is None else provider.model,
            status="disabled" if provider is None else provider.status(),
            fallback_add_enabled=settings.extract_fallback_add,
        )


class QueueFull(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "error": "extract_queue_full",
                    "message": "Too many extractions wait; try again in a while",
                    "queue_depth": 32,
                    "queue_max": 32,
                    "retry_after_sec": 15,
                }
            ]
        }
    )

    error: str
    message: str
    queue_depth: int
    queue_max: int
    retry_after_sec: int


class QueueFullBody(BaseModel):
    """The error body where too many extractions wait: `detail` is an object then."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "detail": QueueFull.model_config["json_schema_extra"]["examples"][0],  # type: ignore[index]
                    "code": "extract_queue_full",
                    "request_id": "4f9c2a7d6b1e4c0f8a3d5e7b9c1f2a4d",
                }
            ]
        }
    )

    detail: str | QueueFull = Field(description="How many wait; a sentence where it is requests that are too many.")
    code: str = Field(description="Stable name of the error.")
    request_id: str = Field(description="Also in the header X-Request-ID and in the log.")


def queue_errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The error answers of a route that queues an extraction."""
    described = error_responses(*statuses)
    described[429]["model"] = QueueFullBody
    return described
