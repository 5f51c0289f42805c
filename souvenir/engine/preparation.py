"""From a text to passages that only lack an id: cut, analysed, embedded. Everything slow of a write happens here."""

from __future__ import annotations

from collections.abc import Sequence

from souvenir.index.analyser import Analyser
from souvenir.search.passages import split_passages
from souvenir.search.profiles import profile_of
from souvenir.types import Embedder, PreparedPassage


def prepare(texts: Sequence[str], embedder: Embedder, analyser: Analyser) -> list[list[PreparedPassage]]:
    """The passages of each text, at least one; all of them embedded in one call.

    :raises EmbeddingUnavailable: If the model cannot run; nothing was stored.
    """
    cut = [split_passages(text, embedder.token_offsets, max_tokens=embedder.max_tokens) for text in texts]
    vectors = iter(embedder.embed_documents([window for windows, _ in cut for window in windows]))
    return [
        [PreparedPassage(window, profile_of(token_count), next(vectors), analyser.terms(window)) for window in windows]
        for windows, token_count in cut
    ]
