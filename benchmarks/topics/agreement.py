"""Agreement of two partitions of the same items: adjusted Rand index, normalised mutual information, purity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Agreement:
    """:param ari: 1 for the same partition, 0 for what chance makes (Hubert and Arabie 1985).

    :param nmi: Mutual information over the mean of both entropies. :param purity: Share of the things that are of the
        subject that most of their group are of; it knows nothing of subjects that are in several groups.
    """

    groups: int
    ari: float
    nmi: float
    purity: float


def agreement(groups: Sequence[int], subjects: Sequence[str]) -> Agreement:
    found, group = np.unique(groups, return_inverse=True)
    true, subject = np.unique(subjects, return_inverse=True)
    counts = np.zeros((len(found), len(true)))
    np.add.at(counts, (group, subject), 1)
    return Agreement(len(found), _ari(counts), _nmi(counts), float(counts.max(axis=1).sum() / counts.sum()))


def _ari(counts: Counts) -> float:
    both, rows, columns = _pairs(counts), _pairs(counts.sum(axis=1)), _pairs(counts.sum(axis=0))
    by_chance = rows * columns / _pairs(counts.sum())
    most = (rows + columns) / 2
    return 1.0 if most == by_chance else float((both - by_chance) / (most - by_chance))


def _pairs(counts: Counts) -> float:
    return float((counts * (counts - 1) / 2).sum())


def _nmi(counts: Counts) -> float:
    share = counts / counts.sum()
    rows, columns = share.sum(axis=1), share.sum(axis=0)
    there = share > 0
    shared = (share[there] * np.log(share[there] / np.outer(rows, columns)[there])).sum()
    mean = (_entropy(rows) + _entropy(columns)) / 2
    return float(shared / mean) if mean else 1.0


def _entropy(share: Counts) -> float:
    return float(-(share[share > 0] * np.log(share[share > 0])).sum())
