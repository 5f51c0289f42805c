"""Quality of probabilities: AUC, expected calibration error, reliability by bin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

BINS = 10


@dataclass(frozen=True, slots=True)
class Bin:
    """Of the answers whose relevance lies between two tenths: the mean of it, and how many are answers in truth."""

    weight: float
    relevance: float
    answered: float


def auc(higher: Sequence[float], lower: Sequence[float]) -> float:
    """The share of pairs in which the first is higher; equal ones count half."""
    first, second = np.array(higher)[:, None], np.array(lower)[None, :]
    return float((first > second).mean() + 0.5 * (first == second).mean())


def reliability(relevances: Sequence[float], answered: Sequence[bool], weights: Sequence[float]) -> list[Bin | None]:
    """`BINS` bins of equal width, the lowest first; None where one is empty."""
    values, truth, mass = (np.array(one, dtype=np.float64) for one in (relevances, answered, weights))
    number = np.minimum((values * BINS).astype(int), BINS - 1)
    return [
        Bin(
            float(mass[chosen].sum()),
            float(np.average(values[chosen], weights=mass[chosen])),
            float(np.average(truth[chosen], weights=mass[chosen])),
        )
        if (chosen := number == one).any()
        else None
        for one in range(BINS)
    ]


def calibration_error(bins: Sequence[Bin | None]) -> float:
    """Expected calibration error (Naeini et al. 2015): the bins' mean distance between relevance and truth."""
    present = [one for one in bins if one is not None]
    total = sum(one.weight for one in present)
    return sum(one.weight * abs(one.relevance - one.answered) for one in present) / total
