"""Convert texts to token ids, with the model's prefixes and special tokens, and never truncated silently."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer

from souvenir.core.errors import EmbeddingUnavailable, InvalidRequest
from souvenir.models.embedding.model_folder import ModelFiles, ModelFolder

TokenIds = Sequence[int]

IDENTIFIER_PIECES = 4
"""A word of Latin letters and digits, with a digit, that has at least this many pieces is an identifier (a hash, a
serial or telephone number) and not a word that the model has learned. None of the English questions of
docs/benchmarks.md has one; dates, years and versions have fewer pieces.
"""

LONG_TEXT_CHARS = 2_000
"""Longer texts are encoded as a batch of one, which lets other threads run: encoding a single text holds the
interpreter for a tenth of a second per 20,000 characters."""


CACHED_LINES = 8_192
CACHED_CHARS = 500
"""Lines whose number of tokens is kept, and their length at most: 5 MB together."""

_WORD_STARTS = "\u2581\u0120"
"""Marks of the first piece of a word in SentencePiece and byte-level vocabularies."""


@dataclass(frozen=True, slots=True)
class QueryWindows:
    """:param rows: Token ids of each window.

    :param start: Index of the first token of the query in a row, after special tokens and the prefix.
    :param spans: Character spans in the query of the tokens of the first window.
    """

    rows: Sequence[TokenIds]
    start: int
    spans: Sequence[tuple[int, int]]


class ModelTokenizer:
    """Thread-safe."""

    def __init__(self, files: ModelFiles) -> None:
        self._tokenizer = open_tokenizer(files.folder)
        self._unknown_id = self._tokenizer.token_to_id(getattr(self._tokenizer.model, "unk_token", None) or "[UNK]")
        self._query_prefix = files.config.query_prefix
        self._document_prefix = files.config.document_prefix
        probe = self._tokenizer.encode("a")
        content = [place for place, special in enumerate(probe.special_tokens_mask) if not special]
        self._before = probe.ids[: content[0]]
        self._after = probe.ids[content[-1] + 1 :]
        self._max_content = files.config.max_length - len(self._before) - len(self._after)
        self._document_prefix_length = len(self._encode(self._document_prefix))
        prefix_length = max(self._document_prefix_length, len(self._encode(self._query_prefix)))
        self.max_tokens = self._max_content - prefix_length
        self._separates_lines = _ends_tokens_at_whitespace(self._tokenizer)
        self._count_of_line = lru_cache(CACHED_LINES)(lambda line: len(self._encode(line)))

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Return the character spans of all content tokens."""
        return self._encode(text).offsets

    def count(self, text: str) -> int:
        """Return the number of content tokens.

        A context is counted several times, and shares most of its lines with the next one, so the counts of lines are
        cached if no token can contain a line break.
        """
        if not self._separates_lines:
            return len(self._encode(text))
        return sum(
            self._count_of_line(line) if len(line) <= CACHED_CHARS else len(self._encode(line))
            for line in text.split("\n")
        )

    def known_share(self, text: str) -> float:
        """Return the share of the content tokens that the model knows; 1 for a text without any.

        Tokens that the vocabulary lacks, and the pieces of an identifier, count as unknown.
        """
        encoding = self._encode(text)
        # Each access copies the whole list.
        ids, offsets = encoding.ids, encoding.offsets
        known = sum(
            sum(ids[place] != self._unknown_id for place in places)
            for places in _words(encoding)
            if not _is_identifier(text[offsets[places[0]][0] : offsets[places[-1]][1]], len(places))
        )
        return known / len(ids) if ids else 1.0

    def documents(self, texts: Sequence[str]) -> list[TokenIds]:
        """:raises InvalidRequest: If a text has more than `max_tokens` tokens."""
        encodings = self._encode_all([self._document_prefix + text for text in texts])
        for place, encoding in enumerate(encodings):
            if len(encoding) > self._max_content:
                raise InvalidRequest(
                    f"Text {place} has {len(encoding)} tokens and the embedding model reads {self._max_content}; "
                    "split it into passages first"
                )
        return [self._wrapped(encoding.ids) for encoding in encodings]

    def without_frame(self, row: TokenIds) -> slice:
        """Return where a row of `documents` has the tokens of the text, without special tokens and the prefix."""
        return slice(len(self._before) + self._document_prefix_length, len(row) - len(self._after))

    def content_tokens(self, stop_words: frozenset[str]) -> NDArray[np.bool_]:
        """Return by vocabulary id whether a token has content: a letter or digit, not special, and not a stop word.

        :raises EmbeddingUnavailable: If the vocabulary has ids above 65,535, which stored token vectors cannot have.
        """
        vocabulary = self.vocabulary()
        size = len(vocabulary)
        if size > np.iinfo(np.uint16).max + 1:
            raise EmbeddingUnavailable(
                f"A vocabulary of {size:,} tokens is too large for token vectors; remove token_vectors from "
                "souvenir.json, or set EMBED_MODEL to another model"
            )
        special = {token.content for token in self._tokenizer.get_added_tokens_decoder().values() if token.special}
        words = [token.lstrip(_WORD_STARTS).casefold() for token in vocabulary]
        return np.array(
            [
                token not in special and word not in stop_words and any(map(str.isalnum, word))
                for token, word in zip(vocabulary, words, strict=True)
            ]
        )

    def vocabulary(self) -> list[str]:
        """Return the tokens by id; an id without a token has an empty one."""
        ids = self._tokenizer.get_vocab()
        tokens = [""] * (max(ids.values()) + 1)
        for token, place in ids.items():
            tokens[place] = token
        return tokens

    def query_windows(self, text: str) -> QueryWindows:
        """Return the text as one window, or as several of about equal length if it is too long, all with the prefix."""
        encoding = self._encode(self._query_prefix + text)
        of_prefix = sum(end <= len(self._query_prefix) for _, end in encoding.offsets) if self._query_prefix else 0
        prefix, content = encoding.ids[:of_prefix], encoding.ids[of_prefix:]
        windows = max(1, -(-len(content) // (self._max_content - of_prefix)))
        bounds = [len(content) * window // windows for window in range(windows + 1)]
        spans = encoding.offsets[of_prefix : of_prefix + bounds[1]]
        shift = len(self._query_prefix)
        return QueryWindows(
            [self._wrapped(prefix + content[start:end]) for start, end in pairwise(bounds)],
            len(self._before) + of_prefix,
            [(start - shift, end - shift) for start, end in spans],
        )

    def _wrapped(self, ids: Sequence[int]) -> TokenIds:
        return [*self._before, *ids, *self._after]

    def _encode(self, text: str) -> Encoding:
        try:
            if len(text) > LONG_TEXT_CHARS:
                return self._tokenizer.encode_batch([text], add_special_tokens=False)[0]
            return self._tokenizer.encode(text, add_special_tokens=False)
        except TypeError as error:
            raise not_unicode() from error

    def _encode_all(self, texts: list[str]) -> list[Encoding]:
        try:
            return self._tokenizer.encode_batch_fast(texts, add_special_tokens=False)
        except TypeError as error:
            raise not_unicode() from error


def _ends_tokens_at_whitespace(tokenizer: Tokenizer) -> bool:
    """Return whether a text has as many tokens as its lines have together, as with BERT's own splitting."""
    parts = json.loads(tokenizer.to_str())
    normalizer, pre_tokenizer = ((parts[name] or {}).get("type") for name in ("normalizer", "pre_tokenizer"))
    return normalizer == "BertNormalizer" and pre_tokenizer == "BertPreTokenizer"


def open_tokenizer(folder: ModelFolder) -> Tokenizer:
    """Open the model's tokenizer, without padding and truncation, whatever its file specifies.

    :raises Unavailable: `folder.use.failure`, if it cannot be read.
    """
    try:
        tokenizer = Tokenizer.from_file(str(folder.tokenizer_path))
    except Exception as error:
        # The library raises plain Exception.
        raise folder.use.failure(
            f"{folder.tokenizer_path} cannot be read; restore it or set {folder.use.setting} to another model"
        ) from error
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def _words(encoding: Encoding) -> Iterator[Sequence[int]]:
    """Yield the indices of each word's tokens."""
    word_ids = encoding.word_ids
    for _, places in groupby(range(len(word_ids)), key=word_ids.__getitem__):
        yield list(places)


def _is_identifier(word: str, pieces: int) -> bool:
    return pieces >= IDENTIFIER_PIECES and word.isascii() and any(sign.isdigit() for sign in word)


def not_unicode() -> InvalidRequest:
    return InvalidRequest("The text is not valid Unicode: it holds half of a surrogate pair; send it as proper UTF-8")
