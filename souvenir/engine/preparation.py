"""From a text to passages that only lack an id: cut, analysed, embedded. Everything slow of a write happens here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import structlog

from souvenir.errors import SouvenirError
from souvenir.index.analyser import Analyser
from souvenir.passages import Chunks, Embeddable, EmbeddedPart, Passage, PreparedPassage, SpokenBy, embeddable
from souvenir.search.passages import split_chunks, split_passages
from souvenir.search.profiles import HEAD_TOKENS, Profiles, memory_profile, message_profile
from souvenir.types import Embedder, FloatVector, Profile

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PassageAnalyser:
    """Terms of passages, chunk by chunk as their profiles say."""

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
    """The passages of each text, at least one; all of them embedded in one call. A message is one passage.

    :param spoken_by: Of messages, who says each; None: the texts are memories.
    :param next_embedder: Embeds them too, if it can: the model that is about to take over.
    :raises EmbeddingUnavailable: If the model cannot run; nothing was stored.
    """
    if spoken_by is None:
        cut = [_cut_memory(text, embedder) for text in texts]
    else:
        cut = [_cut_message(*one, embedder) for one in zip(texts, spoken_by, strict=True)]
    to_embed = [one for of_text in cut for one in of_text.to_embed]
    vectors = iter(vectors_of(to_embed, embedder))
    next_vectors = iter(_vectors_by(next_embedder, to_embed))
    return [
        [
            PreparedPassage(
                text,
                of_text.profile,
                next(vectors),
                analyser.chunks_of(one.text, of_text.profile),
                embedder.model_id,
                next(next_vectors, None),
                of_text.spoken_by,
            )
            for text, one in zip(of_text.texts, of_text.to_embed, strict=True)
        ]
        for of_text in cut
    ]


def _cut_memory(text: str, embedder: Embedder) -> _Cut:
    windows, token_count = split_passages(text, embedder.token_offsets, max_tokens=embedder.max_tokens)
    return _Cut(windows, memory_profile(token_count), None)


def _cut_message(text: str, spoken_by: SpokenBy, embedder: Embedder) -> _Cut:
    token_count = 0 if spoken_by.speaker is None else len(embedder.token_offsets(text))
    return _Cut([text], message_profile(spoken_by, token_count), spoken_by)


def _vectors_by(embedder: Embedder | None, passages: Sequence[Embeddable]) -> list[tuple[str, FloatVector]]:
    """The vectors with the id of their model; none if it fails, since whoever changes the model makes up for it."""
    if embedder is None:
        return []
    try:
        return [(embedder.model_id, vector) for vector in vectors_of(passages, embedder)]
    except SouvenirError as error:
        log.warning("next_model_failed", model_id=embedder.model_id, reason=error.message)
        return []


def vectors_of(passages: Sequence[Embeddable], embedder: Embedder) -> FloatVector:
    """Unit vectors (n, dim) of passages.

    Of one that does not fit in the model's window the part is embedded that counts; if all of it does, it is cut and
    gets the direction of the mean of its windows.
    """
    cut = [_windows(one, embedder) for one in passages]
    vectors = embedder.embed_documents([window for windows in cut for window in windows])
    if len(vectors) == len(passages):
        return vectors
    first = np.cumsum([0, *(len(windows) for windows in cut)])[:-1]
    sums = np.add.reduceat(vectors, first, axis=0)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    means: FloatVector = np.divide(sums, lengths, out=sums, where=lengths > 0)
    return means


def _windows(one: Embeddable, embedder: Embedder) -> list[str]:
    if one.part is EmbeddedPart.HEAD:
        offsets = embedder.token_offsets(one.text)
        most = min(HEAD_TOKENS, embedder.max_tokens)
        return [one.text if len(offsets) <= most else one.text[: offsets[most - 1][1]]]
    windows, _ = split_passages(one.text, embedder.token_offsets, max_tokens=embedder.max_tokens)
    return windows if one.part is EmbeddedPart.ALL else windows[:1]
