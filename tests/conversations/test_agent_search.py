"""Messages and memories in one ranking, although their scores are not comparable."""

from __future__ import annotations

from dataclasses import replace

from souvenir.conversations.agent_search import AgentQuery, AgentSearch, merged
from souvenir.conversations.message_search import MessageHit, MessageQuery
from souvenir.conversations.messages import Conversations
from souvenir.core.types import MemoryDraft, SearchQuery
from souvenir.memories.engine import MemoryEngine
from souvenir.retrieval.reranking import RERANK
from tests.conversations.talk import ANN, say


def test_kinds_are_ordered_by_how_likely_they_answer_whatever_ran(engine: MemoryEngine, conversations: Conversations):
    for number in range(3):
        say(conversations, f"the blue boat of harbour {number}")
    engine.add(ANN, MemoryDraft("nine crabs, eight gulls and some boat among many other things", "notes"))
    text = "blue boat of the harbour"
    found = AgentSearch(engine, conversations).search(ANN, AgentQuery(text))
    assert [isinstance(hit, MessageHit) for hit in found.hits] == [True, True, True, False]
    messages, memories = conversations.search(ANN, MessageQuery(text)), engine.search(ANN, SearchQuery(text))
    late = merged(replace(messages, degraded=(RERANK,)), memories)
    assert late.hits == found.hits
    assert late.degraded == (RERANK,)
