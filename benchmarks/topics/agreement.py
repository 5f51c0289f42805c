"""Agreement of topics with subjects, and k-means of vectors that is given the number of subjects: the baseline."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Counts = NDArray[np.float64]

STARTS, ROUNDS, SEED = 20, 100, 9


def adjusted_rand_index(groups: Sequence[int], subjects: Sequence[str]) -> float:
    """Return 1 for the same partition, 0 for what chance makes (Hubert and Arabie 1985)."""
    counts = np.zeros((len(set(groups)), len(set(subjects))))
    places = [np.unique(one, return_inverse=True)[1] for one in (groups, subjects)]
    np.add.at(counts, tuple(places), 1)
    both, rows, columns = _pairs(counts), _pairs(counts.sum(axis=1)), _pairs(counts.sum(axis=0))
    by_chance = rows * columns / _pairs(counts.sum())
    most = (rows + columns) / 2
    return 1.0 if most == by_chance else float((both - by_chance) / (most - by_chance))


def _pairs(counts: Counts) -> float:
    return float((counts * (counts - 1) / 2).sum())


def k_means(points: Vectors, groups: int) -> Sequence[int]:
    """The best of several starts (k-means++, Arthur and Vassilvitskii 2007), by how near the points are."""
    random = np.random.default_rng(SEED)
    runs = [_run(points, _start(points, groups, random)) for _ in range(STARTS)]
    labels: Sequence[int] = min(runs, key=lambda run: run[0])[1].tolist()
    return labels


def _start(points: Vectors, groups: int, random: np.random.Generator) -> Vectors:
    chosen = [int(random.integers(len(points)))]
    while len(chosen) < groups:
        distance = _distances(points, points[chosen]).min(axis=1)
        chosen.append(int(random.choice(len(points), p=distance / distance.sum())))
    return points[chosen]


def _run(points: Vectors, centres: Vectors) -> tuple[float, NDArray[np.int64]]:
    labels = np.full(len(points), -1)
    for _ in range(ROUNDS):
        nearest = _distances(points, centres).argmin(axis=1)
        if (nearest == labels).all():
            break
        labels = nearest
        centres = np.stack(
            [
                points[labels == one].mean(axis=0) if (labels == one).any() else centres[one]
                for one in range(len(centres))
            ]
        )
    return float(_distances(points, centres).min(axis=1).sum()), labels


def _distances(points: Vectors, centres: Vectors) -> NDArray[np.float64]:
    """Squared, shape (points, centres)."""
    distances: NDArray[np.float64] = np.maximum(
        (points**2).sum(axis=1)[:, None] - 2 * points @ centres.T + (centres**2).sum(axis=1), 0
    ).astype(np.float64)
    return distances
