"""Stores for the parts on damage: filled through the engine, with their ledger, and the answers of their searches."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.fake_embedder import FakeTokenEmbedder
from benchmarks.faults.contents import SCOPES, WORDS, Ledger, Operation, key_of, new_key, new_text
from souvenir.conversations.blocks import Blocks
from souvenir.conversations.message_search import MessageQuery
from souvenir.conversations.messages import Conversations
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, MessageRole, SearchQuery
from souvenir.memories.engine import MemoryEngine
from souvenir.store.messages.blocks import BlockDraft
from souvenir.store.messages.messages import MessageDraft

QUERIES = 8
FOUND = 10
NOW = datetime(2026, 1, 1, tzinfo=UTC)
"""The time of the compared searches, since scores depend on it."""

SCORE_DIGITS = 3

Answers = Mapping[tuple[int, str, str], Sequence[tuple[float, str]]]
"""Scores and texts by the place of the namespace, the kind and the query; best first."""


def open_engine(data_dir: Path) -> MemoryEngine:
    engine = MemoryEngine.open(Settings(data_dir=data_dir), FakeTokenEmbedder())
    engine.warm_up()
    return engine


def fill(engine: MemoryEngine, ledger: Ledger, dice: random.Random, commits: int) -> None:
    """Store so many objects of each kind in every namespace, each in a commit of its own, and acknowledge them."""
    conversations, blocks = Conversations(engine), Blocks(engine)
    for number in range(commits):
        for place, scope in enumerate(SCOPES):
            key, text = _new("memory", place, dice)
            facts = (f"Fact of {text}",) if number % 3 == 0 else ()
            engine.add(scope, MemoryDraft(text, "load/kept", facts=facts))
            ledger.acknowledge(0, Operation("add", {key: text}))
            if not place:
                continue
            key, text = _new("message", place, dice)
            conversations.add(scope, [MessageDraft(MessageRole.USER, text, session_id=f"session-{place}")])
            ledger.acknowledge(0, Operation("message", {key: text}))
            if number % 10 == 0:
                key, text = _new("block", place, dice)
                blocks.create(scope, BlockDraft(key, text, None, 2_000, read_only=False))
                ledger.acknowledge(0, Operation("block", {key: text}))


def _new(kind: str, place: int, dice: random.Random) -> tuple[str, str]:
    key = new_key(kind, place, dice)
    return key, new_text(key, dice)


def build(data_dir: Path, ledger: Ledger, seed: int, commits: int) -> None:
    """Fill a new or an existing store, delete some of it, load all of its indexes, and close it."""
    dice = random.Random(seed)
    with closing(open_engine(data_dir)) as engine:
        fill(engine, ledger, dice, commits)
        for scope in SCOPES:
            found = engine.page(scope, offset=0, limit=100_000).memories
            for memory in dice.sample(found, len(found) // 10):
                engine.delete(scope, memory.id)
                ledger.acknowledge(0, Operation("delete", {key_of(memory.text): None}))
        answers(engine, ["amber"])


def queries_of(ledger: Ledger, dice: random.Random) -> list[str]:
    """Return keys of objects that are there or were deleted, and common words."""
    keys = sorted(ledger.texts) + sorted(ledger.removed)
    return [*dice.sample(keys, min(QUERIES, len(keys))), " ".join(dice.sample(WORDS, 3)), dice.choice(WORDS)]


def answers(engine: MemoryEngine, queries: Sequence[str]) -> Answers:
    """Search every namespace for memories and messages."""
    conversations, found = Conversations(engine), {}
    for place, scope in enumerate(SCOPES):
        for text in queries:
            hits = engine.search(scope, SearchQuery(text, top_k=FOUND, now=NOW)).hits
            found[place, "memories", text] = _ordered((hit.score, hit.memory.text) for hit in hits)
            if place:
                said = conversations.search(scope, MessageQuery(text, limit=FOUND, now=NOW)).hits
                found[place, "messages", text] = _ordered((hit.score, hit.message.content) for hit in said)
    return found


def _ordered(hits: Iterable[tuple[float, str]]) -> list[tuple[float, str]]:
    return sorted(((round(score, SCORE_DIGITS), text) for score, text in hits), reverse=True)
