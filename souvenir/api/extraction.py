"""Extraction: queue a job that extracts memories from a transcript.

The job and, if requested, the turns as messages are stored in one transaction; a repeated request under the same
Idempotency-Key creates neither again.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Self

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from souvenir.api.fields import Clean, Moment, OptionalSource, SessionId, UserName
from souvenir.conversations.transcript_sync import message_drafts
from souvenir.core.errors import InvalidRequest, JobNotFound
from souvenir.core.timestamps import utc_now
from souvenir.core.types import Scope
from souvenir.learning.extraction import Extraction, ExtractionRequest
from souvenir.learning.transcripts.transcript import read_transcript
from souvenir.memories.engine import MemoryEngine
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import OF_BOTH, MakeOnce, RunningService, Writer, agent_scope
from souvenir.server.routing import Routes
from souvenir.server.service import Service
from souvenir.store.admin import jobs
from souvenir.store.admin.jobs import Job, JobStatus
from souvenir.store.idempotency import Once, do_once, made_before
from souvenir.store.messages import messages as message_rows
from souvenir.store.messages.messages import Message, MessageDraft
from souvenir.store.sql import Connection
from souvenir.store.transaction import Transaction

routes = Routes("extraction")

JOB_ID = "0d7f6a3c5b2e4f1a9c8d7e6f5a4b3c2d"

Context = Annotated[str, StringConstraints(max_length=100), Clean]


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
        description="The source of the stored facts; only memories of this source and below are compared and "
        "changed. Empty: the whole namespace, and new memories get the source `extract`. Required for "
        "keys with prefixes.",
    )
    context: Context = Field(
        default="stop",
        description="The occasion: `stop`, `session_end`, `pre_compact` (which extracts more), or any other text.",
    )
    debug: bool = Field(default=False, description="Include the prompts and the cost of the model in the result.")
    dry_run: bool = Field(
        default=False, description="Decide, but change nothing; `/memory/extract/commit` applies the chosen actions."
    )
    document_at: Moment | None = Field(
        default=None, description="The date of the conversation, where the transcript contains none."
    )
    store_messages: bool = Field(
        default=False,
        description="Also store the turns as messages of the namespace's agent, in the same transaction, so that "
        "they are searchable immediately. Needs a key for the whole namespace.",
    )
    session: SessionId | None = Field(
        default=None,
        description="The session of the conversation and of the stored messages (a new one if unset); deleting it "
        "also deletes the extracted memories.",
    )
    user: UserName | None = Field(
        default=None,
        description="The user that the agent talks with, by default the user of the session; deleting them also "
        "deletes the extracted memories.",
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
    """The stored turns of the transcript."""

    count: int = Field(description="The number of stored messages.")
    session_id: str | None = Field(description="Their session; null if nothing was stored.")

    @classmethod
    def of(cls, messages: Sequence[Message]) -> StoredTurns:
        return cls(count=len(messages), session_id=messages[0].session_id if messages else None)


class ExtractResult(BaseModel):
    """The result of an extraction: one action per fact, and counts. Texts are those of the ledger as it is now.

    `error` means that the model failed and nothing was changed; `skipped_reason` is why it was not called.
    """

    model_config = ConfigDict(extra="allow")

    actions: Annotated[list[dict[str, Any]], OF_BOTH] = Field(
        default_factory=list,
        description="`action` is `add`, `update`, `delete`, `noop`, `conflict`, `fallback_add`, `skipped` or `error`; "
        "of a dry run the verdict in capitals, with `fact_index`.",
        examples=[[{"action": "add", "text": "The billing service moves to Postgres 17 in May.", "id": 12}]],
    )
    extracted_count: int = Field(default=0, description="The number of facts that were found.", examples=[1])
    stored_count: int = Field(default=0, description="The number of added memories.", examples=[1])
    updated_count: int = Field(default=0, description="The number of superseded memories.")
    deleted_count: int = Field(default=0, description="The number of archived memories.")
    noop_count: int = Field(default=0, description="The number of facts that a memory already states.")
    conflict_count: int = Field(default=0, description="The number of facts that contradict a memory.")
    promotion_candidates: list[Any] = Field(
        default_factory=list, description="Always empty: promotion does not exist.", examples=[[]]
    )
    dry_run: bool | None = Field(
        default=None, description="True: nothing was changed, and the counts are those of the planned changes."
    )
    approval: str | None = Field(
        default=None,
        description="`required`: nothing was changed, because more memories would be deleted than allowed, or "
        "because approved actions had to be decided again.",
    )
    removing: list[int] | None = Field(
        default=None,
        description="The ordinals of actions that would remove a memory: set while an approval is pending, and for "
        "a dry run with more of them than EXTRACT_MAX_DELETES.",
    )
    undone: bool | None = Field(
        default=None, description="True: the extraction was undone; actions and counts are as before."
    )
    undone_at: str | None = Field(default=None, description="The time of the undo.")
    result_url: str | None = Field(
        default=None,
        description="The URL of the extraction; append `/undo` to undo it.",
    )
    error: str | None = Field(
        default=None, description="`provider_runtime_failure`: the model failed, and nothing was changed."
    )
    error_stage: str | None = None
    error_message: str | None = None

    @classmethod
    def of(cls, job: Job, extraction: Extraction) -> Self:
        """The result of a completed job."""
        return cls.model_validate(extraction.result_of(job))


class ExtractAccepted(BaseModel):
    """The transcript was accepted."""

    job_id: str
    status: JobStatus = Field(description="`queued`; without a model, `completed` if it finished immediately.")
    queue_depth: int = Field(description="The number of queued extractions of all namespaces.")
    result_url: str = Field(
        description="The URL of the progress and the result.",
        examples=["/memory/extract/0d7f6a3c5b2e4f1a9c8d7e6f5a4b3c2d"],
    )
    result: ExtractResult | None = Field(default=None, description="Set when the extraction is completed.")
    messages: StoredTurns | None = Field(default=None, description="Set if `store_messages` was requested.")

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


class QueueFull(BaseModel):
    error: str = Field(examples=["extract_queue_full"])
    message: str = Field(examples=["Too many extractions wait; try again in a while"])
    queue_depth: int
    queue_max: int
    retry_after_sec: int


class QueueFullBody(BaseModel):
    """The error body when the extraction queue is full: `detail` is an object."""

    detail: str | QueueFull = Field(
        description="The state of the queue; one sentence if too many requests are queued.",
        examples=[
            {
                "error": "extract_queue_full",
                "message": "Too many extractions wait; try again in a while",
                "queue_depth": 32,
                "queue_max": 32,
                "retry_after_sec": 15,
            }
        ],
    )
    code: str = Field(description="The stable name of the error.", examples=["extract_queue_full"])
    request_id: str = Field(
        description="Also in the header X-Request-ID and in the log.", examples=["4f9c2a7d6b1e4c0f8a3d5e7b9c1f2a4d"]
    )


QUEUE_FULL: dict[int | str, dict[str, Any]] = {429: {"model": QueueFullBody}}
"""The error answer of a route that queues an extraction."""


# --- queueing --------------------------------------------------------------------------------------------------------


FALLBACK_WAIT_S = 5.0
"""How long a request waits for a job without a model, which embeds a few sentences and usually finishes by then."""


@dataclass(frozen=True, slots=True)
class Taken:
    """:param messages: The stored turns of the transcript; None if they were not requested."""

    job: Job
    messages: Sequence[Message] | None = None


def take(service: Service, scope: Scope, body: ExtractRequest, once: Once | None) -> Taken:
    """Queue the job, and wait for it if it uses no model.

    :raises InvalidRequest: If the transcript is too long. :raises SessionEnded: If its messages' session has ended.
    :raises IdempotencyKeyReused: If the key was sent with a different request.
    """
    most = service.settings.max_extract_message_chars
    if len(body.messages) > most:
        raise InvalidRequest(f"messages takes at most {most} characters (MAX_EXTRACT_MESSAGE_CHARS); send it in parts")
    before = None if once is None else _made_before(service.engine, scope, body, once)
    taken = before or _take(service, scope, body, once)
    if service.provider is not None:
        return taken
    return replace(taken, job=service.extraction_work.waited(taken.job, FALLBACK_WAIT_S))


def _take(service: Service, scope: Scope, body: ExtractRequest, once: Once | None) -> Taken:
    conversations = service.conversations
    session = body.session or (str(uuid.uuid4()) if body.store_messages else None)
    drafts: Sequence[MessageDraft] = ()
    if session is not None and body.store_messages:
        transcript = read_transcript(body.messages, document_at=body.document_at)
        drafts = message_drafts(transcript, session_id=session, user=body.user)
    prepared = conversations.prepared(scope, drafts) if drafts else ()
    stored: list[Message] = []

    def within(insert_job: Callable[[Connection], Job]) -> Job:
        def work(tx: Transaction) -> Job:
            def make() -> Job:
                stored[:] = conversations.insert(tx, prepared) if prepared else ()
                return insert_job(tx.connection)

            def again(ids: Sequence[str]) -> Job:
                made = _read(tx.connection, tx.namespace_id, body, ids)
                stored[:] = made.messages or ()
                return made.job

            return do_once(tx, once, make, ids=lambda job: [job.id, *(one.uid for one in stored)], again=again)

        return service.engine.write(scope, work)

    job = service.extraction.submit(scope, body.to_request(session), within=within)
    return Taken(job, stored if body.store_messages else None)


def _made_before(engine: MemoryEngine, scope: Scope, body: ExtractRequest, once: Once) -> Taken | None:
    """The result of the same request, looked up before anything is embedded again."""
    with engine.namespace(scope) as (connection, namespace):
        ids = None if namespace is None else made_before(connection, namespace.id, scope.actor, once, utc_now())
        if namespace is None or ids is None:
            return None
        once.replayed()
        return _read(connection, namespace.id, body, ids)


def _read(connection: Connection, namespace_id: int, body: ExtractRequest, ids: Sequence[str]) -> Taken:
    """Return the current state of the job.

    :raises JobNotFound: If the job is no longer stored.
    """
    job_id, *uids = ids
    job = jobs.find(connection, job_id)
    if job is None:
        raise JobNotFound(job_id)
    found = message_rows.by_uid(connection, namespace_id, uids)
    messages = [found[uid] for uid in uids if uid in found]
    return Taken(job, messages if body.store_messages else None)


@routes.post(
    "/memory/extract",
    summary="Extract memories from a transcript",
    cost=CostClass.WRITE,
    large_body=True,
    sdk="extraction.start",
    status_code=202,
    errors=[400, 409, 501],
    responses=QUEUE_FULL,
)
def extract(
    body: ExtractRequest, scope: Writer, service: RunningService, request: Request, once: MakeOnce
) -> ExtractAccepted:
    """Queue a job that finds facts in a transcript and adds, updates or deletes memories accordingly."""
    if body.store_messages:
        agent_scope(request, scope.namespace)
    taken = take(service, scope, body, once)
    return ExtractAccepted.of(taken.job, taken.messages, service.extraction)
