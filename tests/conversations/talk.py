"""Shorthands for common operations in the tests of conversations."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from souvenir.conversations.message_search import MessageQuery
from souvenir.conversations.messages import Conversations
from souvenir.core.errors import EmbeddingUnavailable
from souvenir.core.types import FloatVector, MessageRole, Scope
from souvenir.store.messages.messages import Message, MessageDraft, MessageFilter
from tests.fake_embedder import FakeEmbedder

ANN, BEN = Scope("ann_agent", "ann"), Scope("ben_agent", "ben")
NOON = datetime(2023, 5, 8, 12, 0, tzinfo=UTC)


class BrokenEmbedder(FakeEmbedder):
    """Cannot embed what is to be stored."""

    def embed_documents(self, texts: Sequence[str]) -> FloatVector:
        raise EmbeddingUnavailable("The model is gone")


def at(minutes: float) -> datetime:
    """So long after NOON."""
    return NOON + timedelta(minutes=minutes)


def draft(content: str, role: MessageRole = MessageRole.USER, **fields: Any) -> MessageDraft:
    return MessageDraft(role, content, **fields)


def say(conversations: Conversations, content: str, scope: Scope = ANN, **fields: Any) -> Message:
    [message] = conversations.add(scope, [draft(content, **fields)])
    return message


def found(conversations: Conversations, text: str, scope: Scope = ANN, **fields: Any) -> list[str]:
    """The contents, best first."""
    return [hit.message.content for hit in conversations.search(scope, MessageQuery(text, **fields)).hits]


def listed(conversations: Conversations, scope: Scope = ANN, **fields: Any) -> list[str]:
    """The contents, newest first."""
    messages, total = conversations.page(scope, MessageFilter(**fields))
    assert total == len(messages)
    return [one.content for one in messages]


def without_tokens(text: str) -> str:
    """The text without the tokens of its fences."""
    return re.sub(r'(?<=recalled_memory) id="[0-9a-f]{16}"', "", text)
