"""Convert texts to token ids, with the model's prefixes and special tokens, and never truncated silently."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from tokenizers import Encoding, Tokenizer

from souvenir.core.errors import InvalidRequest
from souvenir.models.embedding.model_folder import ModelFiles, ModelFolder

TokenIds = Sequence[int]

IDENTIFIER_PIECES = 4
"""A word of Latin letters and digits, with a digit, that has at least this many pieces is an identifier (a hash, a
serial
or telephone number) and not a word that the model has learned. None of the English questions of docs/benchmarks.md has
one; dates, years and versions have fewer pieces.
"""

LONG_TEXT_CHARS = 2_000
"""Longer texts are encoded as a batch of one, which lets other threads run: encoding a single text holds the
interpreter for a tenth of a second per 20,000 characters."""


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
        prefix_length = max(len(self._encode(prefix)) for prefix in (self._query_prefix, self._document_prefix))
        self.max_tokens = self._max_content - prefix_length

    def offsets(self, text: str) -> list[tuple[int, int]]:
        """Return the character spans of all content tokens."""
        return self._encode(text).offsets

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

    def query_windows(self, text: str) -> list[TokenIds]:
        """Return the text as one window, or as several of about equal length if it is too long, all with the prefix."""
        encoding = self._encode(self._query_prefix + text)
        of_prefix = sum(end <= len(self._query_prefix) for _, end in encoding.offsets) if self._query_prefix else 0
        prefix, content = encoding.ids[:of_prefix], encoding.ids[of_prefix:]
        windows = max(1, -(-len(content) // (self._max_content - of_prefix)))
        bounds = [len(content) * window // windows for window in range(windows + 1)]
        return [self._wrapped(prefix + content[start:end]) for start, end in pairwise(bounds)]

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
