"""A request to learn from a transcript, as one write: its job, and its turns as messages of the agent if that is asked.

Both are there or neither is, and the same request under the same Idempotency-Key makes them once.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import apsw

from memory_engine import MemoryEngine
from souvenir.api.extraction_models import ExtractRequest
from souvenir.api.service import Service
from souvenir.conversation.transcripts import message_drafts
from souvenir.errors import InvalidRequest, JobNotFound
from souvenir.extraction.transcript import read_transcript
from souvenir.moments import utc_now
from souvenir.settings import Settings
from souvenir.store import jobs
from souvenir.store import messages as message_rows
from souvenir.store.idempotency import Once, do_once, made_before
from souvenir.store.jobs import Job
from souvenir.store.messages import Message, MessageDraft
from souvenir.store.transaction import Transaction
from souvenir.types import Scope

FALLBACK_WAIT_S = 5.0
"""That a request waits for a job that asks no model: it reads sentences and embeds a few, so it is done by then."""


@dataclass(frozen=True, slots=True)
class Taken:
    """:param messages: Those that were stored of the transcript; None if nobody asked for it."""

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
    """What the same request made, before anything is embedded for it again."""
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
