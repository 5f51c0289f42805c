"""From a text to passages that only lack an id: cut, analysed, embedded. Everything slow of a write happens here."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import structlog

from souvenir.errors import SouvenirError
from souvenir.index.analyser import Analyser
from souvenir.passages import PreparedPassage, searched_text
from souvenir.search.passages import split_passages
from souvenir.search.profiles import profile_of, turn_profile_of
from souvenir.types import Embedder, FloatVector

log = structlog.get_logger(__name__)


def prepare(
    texts: Sequence[str],
    embedder: Embedder,
    analyser: Analyser,
    *,
    speakers: Sequence[str | None] | None = None,
    next_embedder: Embedder | None = None,
) -> list[list[PreparedPassage]]:
    """The passages of each text, at least one; all of them embedded in one call.

    :param speakers: Of turns of a conversation, who says each, where that has a name.
    :param next_embedder: Embeds them too, if it can: the model that is about to take over.
    :raises EmbeddingUnavailable: If the model cannot run; nothing was stored.
    """
    named: Sequence[str | None] = [None] * len(texts) if speakers is None else speakers
    cut = [_cut(text, speaker, embedder) for text, speaker in zip(texts, named, strict=True)]
    windows = [
        searched_text(window, speaker) for (parts, _), speaker in zip(cut, named, strict=True) for window in parts
    ]
    vectors = iter(embedder.embed_documents(windows))
    next_vectors = iter(_vectors_by(next_embedder, windows))
    return [
        [
            PreparedPassage(
                window,
                profile_of(token_count) if speakers is None else turn_profile_of(speaker),
                next(vectors),
                analyser.terms(searched_text(window, speaker)),
                embedder.model_id,
                next(next_vectors, None),
                speaker,
            )
            for window in parts
        ]
        for (parts, token_count), speaker in zip(cut, named, strict=True)
    ]


def _cut(text: str, speaker: str | None, embedder: Embedder) -> tuple[list[str], int]:
    """Windows that leave room for the speaker, and how many tokens the text has."""
    of_speaker = 0 if speaker is None else len(embedder.token_offsets(searched_text("", speaker)))
    return split_passages(text, embedder.token_offsets, max_tokens=max(embedder.max_tokens - of_speaker, 1))


def _vectors_by(embedder: Embedder | None, windows: Sequence[str]) -> list[tuple[str, FloatVector]]:
    """The vectors with the id of their model; none if it fails, since whoever changes the model makes up for it."""
    if embedder is None:
        return []
    try:
        return [(embedder.model_id, vector) for vector in vectors_of(windows, embedder)]
    except SouvenirError as error:
        log.warning("next_model_failed", model_id=embedder.model_id, reason=error.message)
        return []


def vectors_of(passages: Sequence[str], embedder: Embedder) -> FloatVector:
    """Unit vectors (n, dim) of passages that another model's window may have cut.

    One that does not fit in this one's is cut again, and gets the direction of the mean of its parts.
    """
    cut = [split_passages(text, embedder.token_offsets, max_tokens=embedder.max_tokens)[0] for text in passages]
    vectors = embedder.embed_documents([window for windows in cut for window in windows])
    if len(vectors) == len(passages):
        return vectors
    first = np.cumsum([0, *(len(windows) for windows in cut)])[:-1]
    sums = np.add.reduceat(vectors, first, axis=0)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    means: FloatVector = np.divide(sums, lengths, out=sums, where=lengths > 0)
    return means
