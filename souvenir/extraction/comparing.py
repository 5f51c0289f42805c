"""What two extractions of one transcript have in common, and where they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from memory_engine import MemoryEngine
from souvenir.decisions import FactRow
from souvenir.extraction.nearness import NOVELTY_SIMILARITY, unit_vectors, words_key
from souvenir.extraction.preparing import prepared

Pair = tuple[FactRow, FactRow]


@dataclass(frozen=True, slots=True)
class Difference:
    """Facts of two ledgers.

    :param agreed: In both, and decided alike. :param decided_otherwise: In both, with another verdict or memory.
    """

    agreed: tuple[Pair, ...]
    decided_otherwise: tuple[Pair, ...]
    only_first: tuple[FactRow, ...]
    only_second: tuple[FactRow, ...]


def compared(engine: MemoryEngine, first: Sequence[FactRow], second: Sequence[FactRow]) -> Difference:
    """Each fact with the nearest one of the other ledger that says the same; what is forgotten is left out."""
    left = [row for row in first if row.fact is not None]
    right = [row for row in second if row.fact is not None]
    pairs = _pairs(engine, left, right)
    paired = {row.ordinal for row, _ in pairs}, {row.ordinal for _, row in pairs}
    return Difference(
        tuple(pair for pair in pairs if _verdict(pair[0]) == _verdict(pair[1])),
        tuple(pair for pair in pairs if _verdict(pair[0]) != _verdict(pair[1])),
        tuple(row for row in left if row.ordinal not in paired[0]),
        tuple(row for row in right if row.ordinal not in paired[1]),
    )


def _pairs(engine: MemoryEngine, left: Sequence[FactRow], right: Sequence[FactRow]) -> list[Pair]:
    if not left or not right:
        return []
    texts = [row.fact.text for row in (*left, *right) if row.fact is not None]
    vectors = np.array(unit_vectors(prepared(engine, texts)))
    keys = np.array([words_key(text) for text in texts])
    theirs, their_keys = vectors[len(left) :], keys[len(left) :]
    near: list[tuple[float, int, int]] = []
    for i in range(len(left)):
        likeness = np.where(their_keys == keys[i], 1.0, theirs @ vectors[i])
        near += [(-float(likeness[j]), i, int(j)) for j in np.flatnonzero(likeness >= NOVELTY_SIMILARITY)]
    pairs: dict[int, int] = {}
    taken: set[int] = set()
    for _, i, j in sorted(near):
        if i not in pairs and j not in taken:
            pairs[i] = j
            taken.add(j)
    return [(left[i], right[pairs[i]]) for i in sorted(pairs)]


def _verdict(row: FactRow) -> tuple[str | None, int | None]:
    """What was decided about a fact, and about which memory."""
    decision = row.decision
    if decision is None:
        return row.stage.value, None
    return decision.verdict.value, None if decision.target is None else decision.target.memory_id
