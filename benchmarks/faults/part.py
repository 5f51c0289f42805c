"""A part of the battery, and the outcome of its trials."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Outcome:
    """Counts of a part's trials, and one sentence for each fault that was found.

    :param acknowledged: Objects that the service acknowledged and the ledger compared, over all trials.
    :param lost: Acknowledged objects that are missing or have other content.
    :param doubled: Objects stored more often than acknowledged, batches stored in part, ids issued twice.
    :param risen: Deleted or erased content that came back.
    :param wrong: Wrong answers that nothing reports: searches, counts, orders, times, a missing warning.
    """

    trials: int = 0
    acknowledged: int = 0
    lost: tuple[str, ...] = ()
    doubled: tuple[str, ...] = ()
    risen: tuple[str, ...] = ()
    wrong: tuple[str, ...] = ()

    @property
    def faults(self) -> tuple[str, ...]:
        return self.lost + self.doubled + self.risen + self.wrong

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(
            self.trials + other.trials,
            self.acknowledged + other.acknowledged,
            self.lost + other.lost,
            self.doubled + other.doubled,
            self.risen + other.risen,
            self.wrong + other.wrong,
        )


@dataclass(frozen=True, slots=True)
class Part:
    """One kind of fault.

    :param trials: Number in the short form. :param long_trials: In the longest form.
    :param run: Plays so many trials with a seed in an empty folder.
    :param control: Breaks the service on purpose, once for each way in which the part must see it, in an empty folder.
        Returns a name of each break with the sentences that the part reported; no sentences mean that it saw nothing.
    """

    name: str
    trials: int
    long_trials: int
    run: Callable[[int, int, Path], Outcome]
    control: Callable[[Path], dict[str, tuple[str, ...]]]
