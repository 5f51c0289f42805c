"""Conversations with more messages than either retriever returns candidates.

The first hits equal those of the reference search, and the cost of one more message stays constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from random import Random

import numpy as np
import pytest
from numpy.typing import NDArray

from souvenir.conversations.messages import Conversations
from souvenir.core.settings import Settings
from souvenir.core.types import Filters, FloatVector, MessageRole, PassageKind, Scope, SearchQuery, TurnFilter
from souvenir.index.analyser import Analyser
from souvenir.index.index_key import IndexKey
from souvenir.index.passage_words import NO_ROW
from souvenir.memories.engine import MemoryEngine
from souvenir.retrieval.recall import CANDIDATE_COUNT
from souvenir.store.messages.messages import Message, MessageDraft, MessageFilter
from tests.fake_embedder import FakeEmbedder
from tests.reference.agreement import assert_equals_reference
from tests.reference.search import ReferenceSearch

TALK, CHAT = Scope("talk"), Scope("chat")
MAY = datetime(2023, 5, 8, tzinfo=UTC)
NOW = MAY + timedelta(days=300)
MANY = 2 * CANDIDATE_COUNT
WORDS = "garden bread violin harbour winter teacher engine mountain letter river three Lisbon yesterday".split()
QUESTIONS = [
    "Who told Ann of the violin in the harbour, note77?",
    "When was the winter letter note300",
    "mountan river",
    "What did you suggest about bread and the engine note411?",
]


class CountingEmbedder(FakeEmbedder):
    texts = 0

    def embed_documents(self, texts: Sequence[str]) -> FloatVector:
        self.texts += len(texts)
        return super().embed_documents(texts)


def said(number: int, scope: Scope) -> MessageDraft:
    """Talks of three people, or long answers to short questions; some words, and one of its own."""
    chance = Random(number)
    words = [*chance.choices(WORDS, k=chance.randint(2, 9)), f"note{number}"]
    answers = scope is CHAT and number % 2
    text = ". ".join(" ".join(chance.sample(words, len(words))) for _ in range(12 if answers else 1))
    return MessageDraft(
        MessageRole.ASSISTANT if answers else MessageRole.USER,
        text + chance.choice(["", "?"]),
        session_id=f"s{number % 3}",
        speaker=("Ann", "Ben", "Mia")[number % 5 % 3] if scope is TALK else None,
        created_at=MAY + timedelta(hours=number),
    )


@pytest.fixture(scope="module")
def embedder() -> CountingEmbedder:
    return CountingEmbedder()


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory, embedder: CountingEmbedder) -> Iterator[MemoryEngine]:
    settings = Settings(data_dir=tmp_path_factory.mktemp("many"))
    with closing(MemoryEngine.open(settings, embedder)) as engine:
        for scope in (TALK, CHAT):
            Conversations(engine).add(scope, [said(number, scope) for number in range(MANY)])
        yield engine


def stored(engine: MemoryEngine, scope: Scope) -> list[Message]:
    return list(Conversations(engine).page(scope, MessageFilter(), limit=10_000)[0])


@pytest.mark.parametrize("scope", [TALK, CHAT], ids=lambda scope: scope.namespace)
def test_the_results_of_a_long_conversation_equal_the_reference_search(engine: MemoryEngine, scope: Scope):
    messages = stored(engine, scope)
    reference = ReferenceSearch(FakeEmbedder(), Analyser())
    passages = reference.passages.of_messages(messages)
    one_session = TurnFilter(session_id=messages[0].session_row)
    for filters in (Filters(), Filters(turn=one_session), Filters(since=MAY + timedelta(hours=MANY - 40))):
        for text in QUESTIONS:
            query = SearchQuery(text, 10, filters=filters, now=NOW)
            found = engine.recall(scope, PassageKind.MESSAGE, query)
            assert found is not None
            assert_equals_reference(found, reference.rank(passages, query, NOW), 10)


def test_the_cost_of_a_message_is_constant(engine: MemoryEngine, embedder: CountingEmbedder):
    """One text is embedded, one row is added, and of the others only the one before it learns of a neighbour."""
    embedded, before = embedder.texts, links(engine, TALK)
    Conversations(engine).add(TALK, [said(MANY, TALK)])
    assert embedder.texts == embedded + 1
    after = links(engine, TALK)
    new_row = len(before)
    assert len(after) == new_row + 1
    [previous] = np.flatnonzero((after[:-1] != before).any(axis=1)).tolist()
    assert after[previous].tolist() == [before[previous, 0], new_row]
    assert after[new_row].tolist() == [previous, NO_ROW]


def links(engine: MemoryEngine, scope: Scope) -> NDArray[np.int64]:
    """The rows before and after each row of an agent's messages, (n, 2)."""
    with engine.namespace(scope) as (_, namespace):
        assert namespace is not None
    index = engine.models.serving.registry.get(IndexKey(namespace.id, PassageKind.MESSAGE), 0)
    return np.stack(index.attributes.neighbours(), axis=1)[:-1]
