"""Confidence of a mean over questions: bootstrap intervals (Efron 1979), seeded, so that runs can be repeated.

Two ways to search are compared question by question: what makes a question hard for both cancels out.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 1_000
PERCENT = 95.0
_SEED = 5

Table = NDArray[np.float64]
"""Shape (questions, metrics)."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean, and the interval that holds 95 % of the means of resampled questions."""

    mean: float
    low: float
    high: float

    @property
    def sign(self) -> int:
        """1 or -1 if the whole interval lies on that side of zero, else 0."""
        return int(self.low > 0) - int(self.high < 0)

    def __str__(self) -> str:
        return f"{self.mean:.3f}"


def estimates(scores: Table) -> list[Estimate]:
    """One a metric. The same questions are drawn for all of them, and for every table of as many questions."""
    draws = np.random.default_rng(_SEED).integers(len(scores), size=(RESAMPLES, len(scores)))
    means = np.array([scores[draw].mean(axis=0) for draw in draws])
    outside = (100.0 - PERCENT) / 2
    low, high = np.percentile(means, [outside, 100.0 - outside], axis=0)
    return [Estimate(*map(float, one)) for one in zip(scores.mean(axis=0), low, high, strict=True)]


def differences(ours: Table, theirs: Table) -> list[Estimate]:
    """Ours less theirs, of the same questions in the same order."""
    return estimates(ours - theirs)
