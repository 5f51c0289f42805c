"""The comparison of an index with the passages in the database: of all of them, or of a sample.

A sample finds an index of another history or a systematic fault, not one wrong row among many; `check` compares all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from souvenir.core.passages import Chunks, Embedding, Passage
from souvenir.index.namespace import NamespaceIndex

SAMPLED_ROWS = 64
"""Rows of a sample: comparing them takes some milliseconds."""

SAMPLED_AT_LOAD = 8
"""Rows of a sample while a search waits for the index, some 0.3 ms each."""

NEWEST_SHARE = 0.25
"""Share of a sample that has the greatest ids: two histories of one database differ in them first."""

Analyse = Callable[[Passage], Chunks]


class Stored(Protocol):
    """The passages of an index in one state of the database."""

    @property
    def change_seq(self) -> int: ...

    def count(self) -> int:
        """Return the number of passages, with or without an embedding."""

    def passages(self, ids: Iterable[int] | None) -> Iterable[tuple[Passage, Embedding]]:
        """Return those among `ids`, or all, in id order, with their embeddings."""


def problems(index: NamespaceIndex, truth: Iterable[tuple[Passage, Embedding]], analyse: Analyse) -> list[str]:
    """Return every difference between an index and the passages in the database. No write may run meanwhile."""
    with index.lock.read():
        seen, found = _differences(index, ((*one, analyse(one[0])) for one in truth))
        found += index.attributes.problems()
        if not len(seen) == len(index) == len(index.vectors) == len(index.words):
            found.append(
                f"{len(seen)} passages stored, {len(index)} rows, {len(index.vectors)} vectors, "
                f"{len(index.words)} texts"
            )
    return found


def sample_of(ids: NDArray[np.int64], size: int = SAMPLED_ROWS) -> list[int]:
    """Return some of the ids: a share of them the greatest, and others at random."""
    newest_count = int(NEWEST_SHARE * size)
    others, newest = np.split(np.sort(ids), [max(0, len(ids) - newest_count)])
    count = min(len(others), size - newest_count)
    return [*np.random.default_rng().choice(others, count, replace=False).tolist(), *newest.tolist()]


def sampled_problems(index: NamespaceIndex, ids: Iterable[int], stored: Stored, analyse: Analyse) -> list[str]:
    """Return the differences in the passages of these ids, which the index has.

    Writes may run meanwhile; a difference is certain only if none did.
    """
    truth = [(passage, embedding, analyse(passage)) for passage, embedding in stored.passages(ids)]
    with index.lock.read():
        seen, found = _differences(index, truth)
    return found + [f"passage {id_} is not stored" for id_ in ids if id_ not in seen]


def _differences(
    index: NamespaceIndex, truth: Iterable[tuple[Passage, Embedding, Chunks]]
) -> tuple[set[int], list[str]]:
    """Return the ids of the passages, and how their rows differ."""
    seen: set[int] = set()
    found: list[str] = []
    for passage, embedding, chunks in truth:
        seen.add(passage.id)
        row = index.attributes.row_of(passage.id)
        if row is None:
            found.append(f"passage {passage.id} is not indexed")
        else:
            found += _of_row(index, row, passage, embedding, chunks)
    return seen, found


def _of_row(index: NamespaceIndex, row: int, passage: Passage, embedding: Embedding, chunks: Chunks) -> Iterator[str]:
    if not index.vectors.agrees(row, embedding.vector):
        yield f"passage {passage.id} has another vector"
    if not index.tokens.agrees(row, embedding.tokens):
        yield f"passage {passage.id} has other token vectors"
    held, stated = (
        sorted(sorted(one.items()) for one in of) for of in (index.words.chunks_of(row), map(Counter, chunks))
    )
    if held != stated:
        yield f"passage {passage.id} has other terms"
    if not index.attributes.agrees(row, passage):
        yield f"passage {passage.id} has other attributes"
