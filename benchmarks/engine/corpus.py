"""Synthetic memories, the same on every run: words by Zipf's law, topics, and vectors derived from the words.

A third of a text's words are function words, as in English; the others have a random direction each, and a text's
vector is the sum of its words' directions, its topic's and some noise. So texts of a topic lie together, a question
lies near the memory that it was made from, and the two arms agree about as far as they do on real text. No model takes
part: `LookupEmbedder` hands the vectors out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, product

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from souvenir.core.types import FloatVector, PlainEmbedder

DIM = 384
FUNCTION_WORDS = "the a of to and in is was i my for it on with he that at as this by".split()
FUNCTION_SHARE = 0.35
"""Of the words of a text; measured on conversations. Our analyser drops them, the baseline does not."""
VOCABULARY = 50_000
FIRST_RANK = len(FUNCTION_WORDS) + 1
"""In Zipf's law the content words come behind the function words."""
TOPICS = 200
TOPIC_WORDS = 60
TOPIC_SHARE = 0.3
"""Share of a text's content words that come from its topic's own."""
CONTENT_MEAN, CONTENT_SPREAD = 20, 5
QUERY_CONTENT, QUERY_FUNCTION = 6, 4
"""Words of a question; those about LoCoMo's conversations have 5.5 and 4.3."""
NOISE = 0.5

_SYLLABLES = ["".join(pair) for pair in product("bdfgklmnprstvz", "aeiou")]


@dataclass(frozen=True, slots=True)
class Corpus:
    """`vectors` (n, dim) are those of `texts`, `query_vectors` those of `queries`; all of length 1.

    The questions are made from the first texts; the last `spare` are for what is added while something is measured.
    """

    texts: Sequence[str]
    vectors: FloatVector
    queries: Sequence[str]
    query_vectors: FloatVector
    spare: int


class LookupEmbedder(PlainEmbedder):
    """Hands out the vectors of a corpus, so that nothing is embedded while something else is measured."""

    dim = DIM
    ready = True
    max_tokens = 254

    def __init__(self, corpus: Corpus, model_id: str) -> None:
        self.model_id = model_id
        self._documents: Mapping[str, int] = {text: row for row, text in enumerate(corpus.texts)}
        self._queries: Mapping[str, int] = {text: row for row, text in enumerate(corpus.queries)}
        self._corpus = corpus

    def embed_documents(self, texts: Sequence[str]) -> FloatVector:
        return self._corpus.vectors[[self._documents[text] for text in texts]]

    def embed_query(self, text: str) -> FloatVector:
        vector: FloatVector = self._corpus.query_vectors[self._queries[text]]
        return vector

    def known_share(self, text: str) -> float:
        return 1.0

    def token_offsets(self, text: str) -> list[tuple[int, int]]:
        ends = np.cumsum([len(word) + 1 for word in text.split()]) - 1
        return list(zip([0, *(ends[:-1] + 1).tolist()], ends.tolist(), strict=True))


def make_corpus(count: int, *, spare: int, query_count: int, seed: int = 0) -> Corpus:
    """`count` and `spare` texts of about 30 words, and questions that each take some words of one of the first."""
    dice = np.random.default_rng(seed)
    words = _words(VOCABULARY)
    shares = 1.0 / np.arange(FIRST_RANK, FIRST_RANK + VOCABULARY)
    topic_words = dice.integers(VOCABULARY, size=(TOPICS, TOPIC_WORDS))
    directions = _unit(dice.standard_normal((VOCABULARY, DIM), dtype=np.float32))
    topic_directions = _unit(dice.standard_normal((TOPICS, DIM), dtype=np.float32))

    topics = dice.integers(TOPICS, size=count + spare)
    lengths = np.clip(dice.normal(CONTENT_MEAN, CONTENT_SPREAD, len(topics)).astype(int), QUERY_CONTENT, 36)
    chosen = dice.choice(VOCABULARY, size=int(lengths.sum()), p=shares / shares.sum())
    of_text = np.repeat(np.arange(len(topics)), lengths)
    own = dice.random(len(chosen)) < TOPIC_SHARE
    chosen[own] = topic_words[topics[of_text[own]], dice.integers(TOPIC_WORDS, size=int(own.sum()))]

    parts = np.split(chosen, np.cumsum(lengths)[:-1])
    asked_of = dice.choice(count, size=query_count, replace=query_count > count)
    asked = [dice.choice(parts[row], size=QUERY_CONTENT, replace=False) for row in asked_of]
    function_counts = (lengths * FUNCTION_SHARE / (1 - FUNCTION_SHARE)).astype(int)
    return Corpus(
        texts=_texts(parts, function_counts, words, dice),
        vectors=np.concatenate(list(_vectors(parts, topics, directions, topic_directions, dice))),
        queries=_texts(asked, np.full(query_count, QUERY_FUNCTION), words, dice),
        query_vectors=np.concatenate(list(_vectors(asked, topics[asked_of], directions, topic_directions, dice))),
        spare=spare,
    )


def _words(count: int) -> list[str]:
    """Words of three or four syllables, in an order that says nothing of their frequency."""
    found = ["".join(syllables) for syllables in product(_SYLLABLES, repeat=3)]
    order = np.random.default_rng(1).permutation(len(found))[:count]
    return [found[index] for index in order]


def _texts(
    parts: Sequence[NDArray[np.int64]], function_counts: NDArray[np.int64], words: Sequence[str], dice: Generator
) -> list[str]:
    """The words of each part with some function words in between."""
    shares = 1.0 / np.arange(1, FIRST_RANK)
    drawn = iter(dice.choice(FUNCTION_WORDS, size=int(function_counts.sum()), p=shares / shares.sum()).tolist())
    texts = []
    for part, count in zip(parts, function_counts.tolist(), strict=True):
        text = [words[word] for word in part.tolist()] + list(islice(drawn, count))
        texts.append(" ".join(text[index] for index in dice.permutation(len(text)).tolist()))
    return texts


def _vectors(
    parts: Sequence[NDArray[np.int64]],
    topics: NDArray[np.int64],
    directions: FloatVector,
    topic_directions: FloatVector,
    dice: Generator,
) -> Iterator[FloatVector]:
    for part, topic in zip(parts, topics, strict=True):
        spread = np.float32(np.sqrt(len(part)))
        noise = _unit(dice.standard_normal((1, DIM), dtype=np.float32))
        mixed = directions[part].sum(axis=0) / spread + topic_directions[topic]
        yield _unit(mixed[None, :] + np.float32(NOISE) * noise)


def _unit(vectors: FloatVector) -> FloatVector:
    return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), dtype=np.float32)
