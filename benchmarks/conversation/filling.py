"""A data folder full of conversations of one agent, embedded by the real model."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice

from benchmarks.load.sentences import memories
from benchmarks.report import progress
from souvenir.conversations.long_term import PREFERENCE, ROOT
from souvenir.conversations.messages import Conversations
from souvenir.conversations.tiers import Tiers
from souvenir.core.errors import AgentNotFound
from souvenir.core.types import MemoryDraft, MessageRole, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.messages.messages import MessageDraft, MessageFilter

AGENT = "benchmark"
SCOPE = Scope(AGENT)
BATCH = 1_000
SESSION_LENGTH = 50
FACTS = 1_000
PREFERENCES = 20
BEGIN, END = datetime(2023, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)
BETWEEN = timedelta(minutes=1)

_MESSAGES_SEED, _FACTS_SEED = 0, 1


def fill(engine: MemoryEngine, count: int) -> None:
    """Bring the agent to so many messages, in sessions that have ended, with facts and preferences."""
    tiers = Tiers(engine)
    stored = stored_messages(engine)
    drafts = islice(_drafts(), stored, count)
    while batch := list(islice(drafts, BATCH)):
        tiers.conversations.add(SCOPE, batch)
        for session_id in dict.fromkeys(draft.session_id for draft in batch):
            if session_id is not None:
                tiers.sessions.end(SCOPE, session_id)
        stored += len(batch)
        progress(f"{stored:,} of {count:,} messages")
    if not tiers.long_term.preferences(SCOPE)[1]:
        texts = islice(memories(_FACTS_SEED), FACTS)
        source = f"{ROOT}/fact"
        facts = [
            MemoryDraft(f"note {number}: {text}", source, key=f"note {number}") for number, text in enumerate(texts)
        ]
        engine.upsert(SCOPE, facts)
        for number in range(PREFERENCES):
            tiers.long_term.remember(SCOPE, f"preference {number}", "as it was said", PREFERENCE)
    engine.snapshot()


def stored_messages(engine: MemoryEngine) -> int:
    """Of the filling; those that a measurement said are in sessions of their own."""
    try:
        return Conversations(engine).page(SCOPE, MessageFilter(until=END), limit=1)[1]
    except AgentNotFound:
        return 0


def _drafts() -> Iterator[MessageDraft]:
    for number, text in enumerate(memories(_MESSAGES_SEED)):
        role = MessageRole.ASSISTANT if number % 2 else MessageRole.USER
        yield MessageDraft(role, text, session_id=_session_id(number), created_at=BEGIN + number * BETWEEN)


def _session_id(number: int) -> str:
    return f"filled {number // SESSION_LENGTH}"
