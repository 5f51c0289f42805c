"""What the slow search knows of a passage, made from a memory or a message and from nothing else."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from souvenir.core.types import Embedder, JsonObject, Memory, MessageRole, Profile
from souvenir.index.analyser import Analyser
from souvenir.retrieval.preparation import split_passages
from souvenir.store.messages.messages import Message
from tests.reference.constants import FACT_BELOW_TOKENS, HEAD_TOKENS, TABLE, TALK_BELOW_TOKENS, TOKEN_SCALE
from tests.reference.tags import all_of

_TOKEN = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class SlowPassage:
    """:param chunks: The terms of each chunk. :param text: What is said, without who says it.

    :param tokens: Its token vectors, of a profile with late interaction.
    """

    owner_id: int
    profile: Profile
    text: str
    chunks: tuple[tuple[str, ...], ...]
    vector: NDArray[np.float64]
    tokens: tuple[NDArray[np.float64], ...]
    occurred_at: datetime
    session: Hashable = None
    source: str = ""
    archived: bool = False
    metadata: JsonObject = field(default_factory=dict)
    session_row: int | None = None
    user_row: int | None = None
    role: MessageRole | None = None
    speaker: str | None = None
    tags: frozenset[str] = frozenset()
    of_fact: bool = False


class Passages:
    """Remembers the terms and vectors of a text, and nothing else."""

    def __init__(self, embedder: Embedder, analyser: Analyser) -> None:
        self._embedder = embedder
        self._analyser = analyser
        self._windows: dict[str, tuple[list[str], int]] = {}
        self._terms: dict[str, tuple[str, ...]] = {}
        self._chunks: dict[tuple[str, int], tuple[tuple[str, ...], ...]] = {}
        self._vectors: dict[str, NDArray[np.float64]] = {}
        self._tokens: dict[str, tuple[NDArray[np.float64], ...]] = {}

    def of_memories(self, memories: Iterable[Memory]) -> list[SlowPassage]:
        """In the order of their ids. Texts of one source that were given the same date were said together.

        Facts are further passages of their memory, but for one that says just what the memory says.
        """
        found: list[SlowPassage] = []
        for memory in sorted(memories, key=lambda one: one.id):
            session = None if memory.document_at is None else (memory.source, memory.document_at)
            found += self._of_text(memory, memory.text, session)
            for fact in memory.facts:
                found += [] if fact.text == memory.text else self._of_text(memory, fact.text, None, of_fact=True)
        return found

    def _of_text(self, memory: Memory, text: str, session: Hashable, *, of_fact: bool = False) -> list[SlowPassage]:
        windows, tokens = self.windows(text)
        profile = Profile.FACT if tokens < FACT_BELOW_TOKENS else Profile.DOC
        return [
            SlowPassage(
                owner_id=memory.id,
                profile=profile,
                text=window,
                chunks=(self.terms(window),),
                vector=self.vector(window),
                tokens=self.tokens(window, profile),
                occurred_at=memory.occurred_at,
                session=session,
                source=memory.source,
                archived=memory.archived,
                metadata=memory.metadata,
                tags=all_of(memory.tags),
                of_fact=of_fact,
            )
            for window in windows
        ]

    def of_messages(self, messages: Iterable[Message]) -> list[SlowPassage]:
        """Session by session, in the order in which they came."""
        said = sorted(messages, key=lambda one: (one.session_row, one.position))
        return [self._of_message(message) for message in said if message.indexed]

    def _of_message(self, message: Message) -> SlowPassage:
        talks = message.speaker is not None and self.windows(message.content)[1] < TALK_BELOW_TOKENS
        profile = Profile.TALK if talks else Profile.CHAT
        words = spoken(message.content, message.speaker)
        return SlowPassage(
            owner_id=message.id,
            profile=profile,
            text=message.content,
            chunks=self.chunks(words, TABLE[profile].chunk_tokens),
            vector=self.vector(self._head(message, profile)),
            tokens=self.tokens(self._head(message, profile), profile),
            occurred_at=message.created_at,
            session=message.session_row,
            session_row=message.session_row,
            user_row=message.user_row,
            role=message.role,
            speaker=message.speaker,
        )

    def _head(self, message: Message, profile: Profile) -> str:
        """What is embedded of a message: an assistant's answer by its first tokens, any other by its first window."""
        words = spoken(message.content, message.speaker)
        if profile is Profile.CHAT and message.role is MessageRole.ASSISTANT:
            offsets = self._embedder.token_offsets(words)[:HEAD_TOKENS]
            return words[: offsets[-1][1]] if len(offsets) == HEAD_TOKENS else words
        return self.windows(words)[0][0]

    def windows(self, text: str) -> tuple[list[str], int]:
        """The windows of a text, and how many tokens it has."""
        if text not in self._windows:
            self._windows[text] = split_passages(
                text, self._embedder.token_offsets, max_tokens=self._embedder.max_tokens
            )
        return self._windows[text]

    def terms(self, text: str) -> tuple[str, ...]:
        if text not in self._terms:
            self._terms[text] = tuple(self._analyser.terms(text))
        return self._terms[text]

    def chunks(self, text: str, limit: int) -> tuple[tuple[str, ...], ...]:
        """The terms of each chunk; without a limit a text is one."""
        if (text, limit) not in self._chunks:
            self._chunks[text, limit] = tuple(map(self.terms, chunks(text, limit) if limit else [text]))
        return self._chunks[text, limit]

    def vector(self, text: str) -> NDArray[np.float64]:
        if text not in self._vectors:
            self._vectors[text] = self._embedder.embed_documents([text])[0].astype(np.float64)
        return self._vectors[text]

    def tokens(self, text: str, profile: Profile) -> tuple[NDArray[np.float64], ...]:
        if not TABLE[profile].late:
            return ()
        if text not in self._tokens:
            of_texts = self._embedder.embed_passages([text]).tokens
            self._tokens[text] = () if of_texts is None else tuple(of_texts[0].codes.astype(np.float64) / TOKEN_SCALE)
        return self._tokens[text]

    def similarities(self, memories: Iterable[Memory], text: str) -> dict[int, float]:
        """Of every living memory: how much of the text stands there, as a cosine."""
        parts = [self.vector(window) for window in self.windows(text)[0]]
        return {
            memory.id: sum(
                max(float(part @ self.vector(window)) for window in self.windows(memory.text)[0]) for part in parts
            )
            / len(parts)
            for memory in memories
            if not memory.archived
        }


def spoken(text: str, speaker: str | None) -> str:
    return text if speaker is None else f"{speaker}: {text}"


def chunks(text: str, limit: int) -> list[str]:
    """Sentences and lines, as many together as have no more tokens than the limit; a longer sentence stands alone."""
    found: list[list[str]] = []
    room = 0
    for sentence in sentences(text):
        size = len(_TOKEN.findall(sentence))
        if not found or size > room:
            found.append([])
            room = limit
        found[-1].append(sentence)
        room -= size
    return ["\n".join(part) for part in found] or [text]


def sentences(text: str) -> list[str]:
    """A sentence ends with its line, after a mark that white space follows, and after a mark that needs no space."""
    found, start = [], 0
    for at, character in enumerate(text):
        last = text[at - 1] if at else ""
        if character == "\n" or (character.isspace() and last and last in ".!?:") or (last and last in "。！？"):
            found.append(text[start:at])
            start = at
    return [one for one in [*found, text[start:]] if one.strip()]
