"""Preparation of texts for a write: splitting into passages, analysis and embedding. The slow part of every write.

A long text is split into overlapping passages that each fit the embedding model, and into chunks for its words; no text
is dropped.

The passages of memories and of their facts come from one batch of embeddings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import numpy as np
import structlog

from souvenir.core.concurrency import require_time, spend_tokens
from souvenir.core.errors import DeadlineExceeded, SouvenirError
from souvenir.core.fair_order import FairLock
from souvenir.core.passages import (
    Chunks,
    Embeddable,
    EmbeddedPart,
    Embedding,
    Passage,
    PreparedPassage,
    SpokenBy,
    TokenCodes,
    embeddable,
)
from souvenir.core.types import Embedder, Memory, MemoryDraft, MemoryPatch, Profile
from souvenir.index.analyser import Analyser
from souvenir.retrieval.profiles import HEAD_TOKENS, Profiles
from souvenir.store.transaction import FactsNotPrepared

FACT_MAX_TOKENS = 60
"""A memory with fewer tokens of the embedding model is scored as a fact, a longer one as a document."""

TALK_MAX_TOKENS = 256
"""A longer message is scored as a text of its own instead of a turn of a talk."""

SHORT_CHARS = 4_000
"""Texts of at most so many characters together are cut and analysed at once; others take turns."""

_LONG_TEXTS = FairLock()
"""Cutting and analysing hold the interpreter: several threads at it are no faster, and delay every other request."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PassageAnalyser:
    """Terms of passages, chunk by chunk according to their profiles."""

    analyser: Analyser
    profiles: Profiles

    def terms(self, text: str) -> Sequence[str]:
        return self.analyser.terms(text)

    def chunks(self, passage: Passage) -> Chunks:
        return self.chunks_of(passage.searched_text, passage.profile)

    def chunks_of(self, text: str, profile: Profile) -> Chunks:
        max_tokens = self.profiles[profile].chunk_tokens
        pieces = [text] if max_tokens is None else split_chunks(text, max_tokens=max_tokens)
        return [self.analyser.terms(piece) for piece in pieces]


@dataclass(frozen=True, slots=True)
class _Cut:
    """The passages of one text, before they are embedded."""

    texts: Sequence[str]
    profile: Profile
    spoken_by: SpokenBy | None
    tokens: int

    @property
    def to_embed(self) -> list[Embeddable]:
        return [embeddable(text, self.profile, self.spoken_by) for text in self.texts]


def prepare(
    texts: Sequence[str],
    embedder: Embedder,
    analyser: PassageAnalyser,
    *,
    spoken_by: Sequence[SpokenBy] | None = None,
    next_embedder: Embedder | None = None,
) -> list[list[PreparedPassage]]:
    """Return the passages of each text, at least one; all of them embedded in one call. A message is one passage.

    :param spoken_by: Speakers, for messages; None: the texts are memories.
    :param next_embedder: The model that is about to replace the current one; it embeds them too, if it can.
    :raises EmbeddingUnavailable: If the model cannot run; nothing was stored.
    :raises TooManyTokens: If the texts have more tokens than the request may have embedded.
    :raises DeadlineExceeded: If nobody waits for them any more.
    """
    turn = nullcontext if sum(map(len, texts)) <= SHORT_CHARS else _LONG_TEXTS.turn
    cut: list[_Cut] = []
    for place, text in enumerate(texts):
        require_time()
        with turn():
            one = _cut_memory(text, embedder) if spoken_by is None else _cut_message(text, spoken_by[place], embedder)
        spend_tokens(one.tokens)
        cut.append(one)
    to_embed = [one for of_text in cut for one in of_text.to_embed]
    embeddings = iter(embeddings_of(to_embed, embedder))
    following = iter(_embeddings_by(next_embedder, to_embed))
    return [
        [
            PreparedPassage(
                text,
                of_text.profile,
                next(embeddings),
                _chunks_in_time(analyser, one.text, of_text.profile, turn),
                embedder.model_id,
                next(following, None),
                of_text.spoken_by,
            )
            for text, one in zip(of_text.texts, of_text.to_embed, strict=True)
        ]
        for of_text in cut
    ]


def memory_profile(token_count: int) -> Profile:
    return Profile.FACT if token_count < FACT_MAX_TOKENS else Profile.DOC


def message_profile(spoken_by: SpokenBy, token_count: int) -> Profile:
    """Messages of named speakers are turns of a talk; those of a user and an assistant are a chat."""
    talks = spoken_by.speaker is not None and token_count < TALK_MAX_TOKENS
    return Profile.TALK if talks else Profile.CHAT


def _cut_memory(text: str, embedder: Embedder) -> _Cut:
    windows, token_count = split_passages(text, embedder.token_offsets, max_tokens=embedder.max_tokens)
    return _Cut(windows, memory_profile(token_count), None, token_count)


def _cut_message(text: str, spoken_by: SpokenBy, embedder: Embedder) -> _Cut:
    token_count = len(embedder.token_offsets(head_of(text, embedder.token_offsets, tokens=TALK_MAX_TOKENS)))
    return _Cut([text], message_profile(spoken_by, token_count), spoken_by, min(token_count, embedder.max_tokens))


def _chunks_in_time(
    analyser: PassageAnalyser, text: str, profile: Profile, turn: Callable[[], AbstractContextManager[None]]
) -> Chunks:
    require_time()
    with turn():
        return analyser.chunks_of(text, profile)


def _embeddings_by(embedder: Embedder | None, passages: Sequence[Embeddable]) -> list[tuple[str, Embedding]]:
    """Return embeddings with the id of their model; none if it fails: the re-embedding adds missing ones later."""
    if embedder is None:
        return []
    try:
        return [(embedder.model_id, embedding) for embedding in embeddings_of(passages, embedder)]
    except DeadlineExceeded:
        raise
    except SouvenirError as error:
        log.warning("next_model_failed", model_id=embedder.model_id, reason=error.message)
        return []


def embeddings_of(passages: Sequence[Embeddable], embedder: Embedder) -> list[Embedding]:
    """Return the embeddings of passages.

    Of a text that exceeds the model's window, the part to embed is cut out; if that is the whole text, it is split and
    gets the direction of the mean of its windows, and the token vectors of the first.
    """
    cut = [_windows_to_embed(one, embedder) for one in passages]
    windows = [window for windows in cut for window in windows]
    space = embedder.token_space
    if space is not None and any(one.late for one in passages):
        embedded = embedder.embed_passages(windows)
        vectors, tokens = embedded.vectors, embedded.tokens
    else:
        vectors, tokens = embedder.embed_documents(windows), None
    first = np.cumsum([0, *(len(windows) for windows in cut)])[:-1]
    if len(vectors) != len(passages):
        sums = np.add.reduceat(vectors, first, axis=0)
        lengths = np.linalg.norm(sums, axis=1, keepdims=True)
        vectors = np.divide(sums, lengths, out=sums, where=lengths > 0)
    if space is None or tokens is None:
        return [Embedding(vector) for vector in vectors]
    return [
        Embedding(vector, TokenCodes(space, tokens[at].codes) if one.late else None)
        for one, vector, at in zip(passages, vectors, first.tolist(), strict=True)
    ]


def _windows_to_embed(one: Embeddable, embedder: Embedder) -> list[str]:
    require_time()
    if one.part is EmbeddedPart.ALL:
        return split_passages(one.text, embedder.token_offsets, max_tokens=embedder.max_tokens)[0]
    most = min(HEAD_TOKENS, embedder.max_tokens) if one.part is EmbeddedPart.HEAD else embedder.max_tokens
    head = head_of(one.text, embedder.token_offsets, tokens=most)
    if one.part is EmbeddedPart.FIRST_WINDOW:
        return split_passages(head, embedder.token_offsets, max_tokens=most)[0][:1]
    offsets = embedder.token_offsets(head)
    return [one.text if len(offsets) <= most else one.text[: offsets[most - 1][1]]]


SPARE_TOKENS = 128
"""The end of a text that was cut inside of a word: a tokenizer makes at most 100 tokens of a word."""


def head_of(text: str, tokenize: Callable[[str], list[tuple[int, int]]], *, tokens: int) -> str:
    """The beginning of a text that has its first tokens as the whole text does, without a look at the rest of it."""
    size = 8 * tokens
    while size < len(text):
        if len(tokenize(text[:size])) >= tokens + SPARE_TOKENS:
            return text[:size]
        size *= 4
    return text


OVERLAP_TOKENS = 32
"""Tokens by which consecutive passages overlap, so that a statement at a cut is complete in one of them."""

_SENTENCE_END = re.compile(r"[.!?…。！？][\"'”’)\]]*\s+|\n+|(?<=[。！？])")


def split_passages(
    text: str, tokenize: Callable[[str], list[tuple[int, int]]], *, max_tokens: int
) -> tuple[list[str], int]:
    """Split a text into windows of at most `max_tokens` tokens, at sentence ends where possible.

    A cut is at the last sentence end in the second half of the window, or else between two tokens.

    :param tokenize: Returns the character span of every token of a text, in order.
    :return: At least one passage, whose union is the text; and the number of tokens.
    """
    offsets = tokenize(text)
    if len(offsets) <= max_tokens:
        return [text], len(offsets)
    windows: list[str] = []
    for window in _windows(text, offsets, max_tokens):
        # A cut inside a word can give its parts more tokens than the word had.
        windows += split_passages(window, tokenize, max_tokens=max_tokens)[0]
    return windows, len(offsets)


_CHUNK_END = re.compile(r"(?<=[.!?:])\s+|\n+|(?<=[。！？])")
_TOKEN = re.compile(r"\w+|[^\w\s]")


def split_chunks(text: str, *, max_tokens: int) -> list[str]:
    """Group consecutive sentences and lines of together at most `max_tokens` words and marks; a longer one stays whole.

    :return: At least one chunk.
    """
    chunks: list[str] = []
    pieces: list[str] = []
    held = 0
    for piece in _CHUNK_END.split(text):
        tokens = len(_TOKEN.findall(piece))
        if not tokens:
            continue
        if pieces and held + tokens > max_tokens:
            chunks.append("\n".join(pieces))
            pieces, held = [], 0
        pieces.append(piece)
        held += tokens
    return [*chunks, "\n".join(pieces)] if pieces or not chunks else chunks


def _windows(text: str, offsets: Sequence[tuple[int, int]], max_tokens: int) -> Iterator[str]:
    overlap_tokens = min(OVERLAP_TOKENS, max_tokens // 4)
    sentence_starts = {match.end() for match in _SENTENCE_END.finditer(text)}
    first = 0
    while True:
        last = min(first + max_tokens, len(offsets))
        if last < len(offsets):
            last = _cut(offsets, sentence_starts, first, last)
        start = 0 if first == 0 else offsets[first][0]
        yield text[start : len(text) if last == len(offsets) else offsets[last][0]]
        if last == len(offsets):
            return
        first = max(first + 1, last - overlap_tokens)


def _cut(offsets: Sequence[tuple[int, int]], sentence_starts: set[int], first: int, last: int) -> int:
    """Return the first token of the next window: the start of a sentence, if the window's second half has one."""
    for token in range(last, (first + last) // 2, -1):
        position = offsets[token][0]
        if position in sentence_starts:
            return token
    return last


T = TypeVar("T")

Prepare: TypeAlias = Callable[[Sequence[str]], Sequence[Sequence[PreparedPassage]]]


def prepared_drafts(prepare: Prepare, drafts: Sequence[MemoryDraft]) -> list[list[PreparedPassage]]:
    """Return the passages of each draft: of its text, then of its facts that differ from the text."""
    new_facts = [_to_prepare(draft.facts, draft.text) for draft in drafts]
    texts = [text for draft, facts in zip(drafts, new_facts, strict=True) for text in (draft.text, *facts)]
    prepared = iter(prepare(texts))
    return [[*next(prepared), *_of_facts(facts, prepared)] for facts in new_facts]


def prepared_patches(
    prepare: Prepare, patches: Sequence[MemoryPatch], present: Sequence[Memory]
) -> list[list[PreparedPassage]]:
    """Return the new passages of each patch, given the memories as stored; the write checks that they are unchanged."""
    # A fact that equals the text has no passages that could be kept.
    known = [{fact.text for fact in memory.facts if fact.text != memory.text} for memory in present]
    new_facts = [_to_prepare(patch.facts or (), None, of_it) for patch, of_it in zip(patches, known, strict=True)]
    new_texts = [() if patch.text is None else (patch.text,) for patch in patches]
    texts = [text for of_each in zip(new_texts, new_facts, strict=True) for part in of_each for text in part]
    prepared = iter(prepare(texts) if texts else ())
    return [
        [*(one for _ in of_text for one in next(prepared)), *_of_facts(facts, prepared)]
        for of_text, facts in zip(new_texts, new_facts, strict=True)
    ]


def write_patch(
    prepare: Prepare,
    patch: MemoryPatch,
    present: Memory | None,
    write: Callable[[Sequence[PreparedPassage]], T],
) -> T:
    """Prepare the new passages of a patch and write it.

    :param present: The memory as last read: passages of unchanged facts are kept. If one was deleted meanwhile, all are
        prepared.
    """
    known = () if present is None else [fact.text for fact in present.facts]
    try:
        return write(_prepared_patch(prepare, patch, known))
    except FactsNotPrepared:
        return write(_prepared_patch(prepare, patch, ()))


def _prepared_patch(prepare: Prepare, patch: MemoryPatch, known: Collection[str]) -> list[PreparedPassage]:
    facts = _to_prepare(patch.facts or (), None, known)
    texts = [*facts] if patch.text is None else [patch.text, *facts]
    prepared = iter(prepare(texts) if texts else ())
    return [*(() if patch.text is None else next(prepared)), *_of_facts(facts, prepared)]


def _to_prepare(facts: Sequence[str], text: str | None, known: Collection[str] = ()) -> list[str]:
    return [fact for fact in dict.fromkeys(facts) if fact != text and fact not in known]


def _of_facts(facts: Sequence[str], prepared: Iterator[Sequence[PreparedPassage]]) -> Iterator[PreparedPassage]:
    for fact in facts:
        yield from (replace(one, fact=fact) for one in next(prepared))
