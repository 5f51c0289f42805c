"""The request of an extraction, stored in one transaction: the job and, if requested, the turns as messages.

Both are there or neither is, and the same request under the same Idempotency-Key makes them once.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

import apsw
from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from souvenir.api.fields import Clean, Moment, OptionalSource, SessionId, UserName
from souvenir.conversations.transcript_sync import message_drafts
from souvenir.core.errors import InvalidRequest, JobNotFound
from souvenir.core.settings import Settings
from souvenir.core.timestamps import utc_now
from souvenir.core.types import Scope
from souvenir.learning.extraction import ExtractionRequest
from souvenir.learning.transcripts.transcript import read_transcript
from souvenir.memories.engine import MemoryEngine
from souvenir.server.service import Service
from souvenir.store.admin import jobs
from souvenir.store.admin.jobs import Job
from souvenir.store.idempotency import Once, do_once, made_before
from souvenir.store.messages import messages as message_rows
from souvenir.store.messages.messages import Message, MessageDraft
from souvenir.store.transaction import Transaction

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


FALLBACK_WAIT_S = 5.0
"""That a request waits for a job that asks no model: it reads sentences and embeds a few, so it is done by then."""


@dataclass(frozen=True, slots=True)
class Taken:
    """:param messages: The stored turns of the transcript; None if they were not requested."""

    job: Job
    messages: Sequence[Message] | None = None


def take(service: Service, scope: Scope, body: ExtractRequest, once: Once | None) -> Taken:
    """Queue the job, and wait for it where it asks no model.

    :raises InvalidRequest: If the transcript is too long. :raises SessionEnded: If its messages' session has ended.
    :raises IdempotencyKeyReused: If the key came with another request.
    """
    _require_short(service.settings, body.messages)
    before = None if once is None else _made_before(service.engine, scope, body, once)
    taken = before or _take(service, scope, body, once)
    if service.provider is not None:
        return taken
    return replace(taken, job=service.extraction_work.waited(taken.job, FALLBACK_WAIT_S))


def _take(service: Service, scope: Scope, body: ExtractRequest, once: Once | None) -> Taken:
    conversations = service.conversations
    session = body.session or (str(uuid.uuid4()) if body.store_messages else None)
    drafts = [] if session is None or not body.store_messages else _drafts(body, session)
    prepared = conversations.prepared(scope, drafts) if drafts else ()
    stored: list[Message] = []

    def within(insert_job: Callable[[apsw.Connection], Job]) -> Job:
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


def _require_short(settings: Settings, messages: str) -> None:
    most = settings.max_extract_message_chars
    if len(messages) > most:
        raise InvalidRequest(f"messages takes at most {most} characters (MAX_EXTRACT_MESSAGE_CHARS); send it in parts")


def _drafts(body: ExtractRequest, session: str) -> list[MessageDraft]:
    transcript = read_transcript(body.messages, document_at=body.document_at)
    return message_drafts(transcript, session_id=session, user=body.user)


def _made_before(engine: MemoryEngine, scope: Scope, body: ExtractRequest, once: Once) -> Taken | None:
    """The result of the same request, looked up before anything is embedded again."""
    with engine.namespace(scope) as (connection, namespace):
        ids = None if namespace is None else made_before(connection, namespace.id, scope.actor, once, utc_now())
        if namespace is None or ids is None:
            return None
        once.replayed()
        return _read(connection, namespace.id, body, ids)


def _read(connection: apsw.Connection, namespace_id: int, body: ExtractRequest, ids: Sequence[str]) -> Taken:
    """As it is now.

    :raises JobNotFound: If the job is not kept any more.
    """
    job_id, *uids = ids
    job = jobs.find(connection, job_id)
    if job is None:
        raise JobNotFound(job_id)
    found = message_rows.by_uid(connection, namespace_id, uids)
    messages = [found[uid] for uid in uids if uid in found]
    return Taken(job, messages if body.store_messages else None)
