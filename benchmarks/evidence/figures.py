"""The figures of one set: AUC by kind of question, calibration, reliability by bin, and the levels of evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.evidence.calibration import BINS, Bin, auc, calibration_error, reliability
from benchmarks.evidence.fitting import Answer, weights_of
from benchmarks.evidence.questions import Kind
from benchmarks.report import table
from souvenir.core.types import EvidenceLevel


@dataclass(frozen=True, slots=True)
class Figures:
    """:param auc: Answered questions against those of each other kind.

    :param error_own: Expected calibration error over the set's own questions, as many of each kind as it has.
    :param error_all: And with others' questions, weighted as in the fit.
    :param bins: Of these, the lowest relevance first.
    """

    counts: Mapping[Kind, int]
    auc: Mapping[Kind, float]
    mean: Mapping[Kind, float]
    levels: Mapping[Kind, Mapping[EvidenceLevel, float]]
    error_own: float
    error_all: float
    bins: Sequence[Bin | None]


def figures_of(answers: Sequence[Answer]) -> Figures:
    by_kind = {kind: [one.judgement for one in answers if one.kind is kind] for kind in Kind}
    by_kind = {kind: found for kind, found in by_kind.items() if found}
    relevances = {kind: [one.relevance for one in found] for kind, found in by_kind.items()}
    bins = _bins([one for one in answers if one.kind is not Kind.RENAMED])
    return Figures(
        counts={kind: len(found) for kind, found in by_kind.items()},
        auc={
            kind: auc(relevances[Kind.ANSWERED], found)
            for kind, found in relevances.items()
            if kind is not Kind.ANSWERED
        },
        mean={kind: sum(found) / len(found) for kind, found in relevances.items()},
        levels={
            kind: {level: [one.evidence for one in found].count(level) / len(found) for level in EvidenceLevel}
            for kind, found in by_kind.items()
        },
        error_own=calibration_error(_bins([one for one in answers if one.kind.own])),
        error_all=calibration_error(bins),
        bins=bins,
    )


def print_figures(found: Mapping[str, Figures]) -> None:
    print(
        "\n"
        + table(("set", "asked", "questions", "AUC", "mean", *(level.value for level in EvidenceLevel)), _rows(found))
    )
    header = ("relevance", *(f"{name}: mean, answered (weight)" for name in found))
    print("\n" + table(header, [_reliability_row(number, found) for number in range(BINS)]) + "\n")


def _bins(answers: Sequence[Answer]) -> list[Bin | None]:
    answered = [one.kind is Kind.ANSWERED for one in answers]
    return reliability([one.judgement.relevance for one in answers], answered, weights_of(answers))


def _rows(found: Mapping[str, Figures]) -> list[Sequence[str]]:
    return [
        (
            name,
            kind.value,
            str(figures.counts[kind]),
            "" if kind is Kind.ANSWERED else f"{figures.auc[kind]:.3f}",
            f"{figures.mean[kind]:.2f}",
            *(f"{rate:.2f}" for rate in figures.levels[kind].values()),
        )
        for name, figures in found.items()
        for kind in figures.counts
    ]


def _reliability_row(number: int, found: Mapping[str, Figures]) -> Sequence[str]:
    cells = [figures.bins[number] for figures in found.values()]
    return (
        f"{number / BINS:.1f} to {(number + 1) / BINS:.1f}",
        *("" if one is None else f"{one.relevance:.2f} {one.answered:.2f} ({one.weight:.0f})" for one in cells),
    )
