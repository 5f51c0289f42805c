"""Where a memory was learned: the extraction, the users and sessions of its conversation, and the words it came from.

Users and sessions are stored with the memory as long as it exists, and so is the message that contains its quote if the
turns were stored; then its words are read there only. The extraction and the words of its transcript are known while
the job is kept. A text that was changed by hand comes from no extraction.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from souvenir.core.errors import JobNotFound
from souvenir.core.labels import JOB_ID, MESSAGE_ID, MESSAGE_SPAN
from souvenir.core.types import Memory, Scope
from souvenir.learning.extraction import Extraction
from souvenir.learning.quoted_turns import FoundQuote
from souvenir.memories.engine import MemoryEngine
from souvenir.store.learning import extractions
from souvenir.store.learning.extractions import Party
from souvenir.store.messages import messages
from souvenir.store.sql import Connection


@dataclass(frozen=True, slots=True)
class Provenance:
    """:param job_id: The extraction that stored the memory; None if the memory was not extracted.

    :param ordinal: Its fact in the ledger of the job; None if the caller may not see the job, or it is not kept.
    :param quote: None if the words are unknown, or the caller may not read them.
    """

    job_id: str | None
    ordinal: int | None
    users: tuple[str, ...]
    sessions: tuple[str, ...]
    quote: FoundQuote | None


def provenance(
    engine: MemoryEngine, extraction: Extraction, scope: Scope, memory_id: int, *, all_actors: bool = False
) -> Provenance:
    """Return where a memory was learned, as far as the caller may read it.

    A scope that is limited to some sources reads no conversation, and sees the words of its own extractions only.

    :raises MemoryNotFound: If the scope sees no such memory.
    """
    memory = engine.memory(scope, memory_id)
    with engine.namespace(scope) as (connection, namespace):
        job_id = _named_job(memory)
        ordinal = None if job_id is None else extractions.ordinal_of(connection, job_id, memory_id)
        whole = scope.sources is None and namespace is not None
        parties = extractions.parties_of(connection, memory_id) if whole else {}
        quote = _in_message(connection, namespace.id, memory) if whole and namespace is not None else None
        is_stored = whole and MESSAGE_ID in memory.metadata
    if job_id is not None:
        try:
            extraction.get(scope, job_id, all_actors=all_actors)
            if not is_stored and ordinal is not None:
                quote = extraction.quotes(scope, job_id, all_actors=all_actors).get(ordinal)
        except JobNotFound:
            ordinal = None
    users, sessions = (tuple(parties.get(party.value, ())) for party in (Party.USER, Party.SESSION))
    return Provenance(job_id, ordinal, users, sessions, quote)


def _named_job(memory: Memory) -> str | None:
    named = memory.metadata.get(JOB_ID)
    return named if isinstance(named, str) else None


def _in_message(connection: Connection, namespace_id: int, memory: Memory) -> FoundQuote | None:
    uid, span = memory.metadata.get(MESSAGE_ID), memory.metadata.get(MESSAGE_SPAN)
    if not isinstance(uid, str) or (message := messages.by_uid(connection, namespace_id, [uid]).get(uid)) is None:
        return None
    place: Mapping[str, Any] = span if isinstance(span, Mapping) else {}
    start, end = (place.get(name) for name in ("start", "end"))
    if not isinstance(start, int) or not isinstance(end, int):
        return FoundQuote.in_message(message, 0, 0)
    return FoundQuote.in_message(message, start, end)
