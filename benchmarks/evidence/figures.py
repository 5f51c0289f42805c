"""The figures of one set: AUC by kind of question, calibration, reliability by bin, and the levels of evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.evidence.calibration import BINS, Bin, auc, calibration_error, reliability
from benchmarks.evidence.fitting import Answer, weights_of
from benchmarks.evidence.questions import Kind
from benchmarks.report import table
from souvenir.core.types import EvidenceLevel
from souvenir.retrieval.probability import Arms

Levels = Mapping[EvidenceLevel, float]


@dataclass(frozen=True, slots=True)
class Figures:
    """:param auc: Answered questions against those of each other kind.

    :param by_category: The levels of evidence of the set's own questions by category; with several only.
    :param first_right: The levels of evidence where the first hit answers.
    :param error_own: Expected calibration error over the set's own questions, as many of each kind as it has.
    :param error_all: And with others' questions, weighted as in the fit.
    :param bins: Of these, the lowest relevance first.
    """

    counts: Mapping[Kind, int]
    auc: Mapping[Kind, float]
    mean: Mapping[Kind, float]
    levels: Mapping[Kind, Levels]
    by_category: Mapping[str, Levels]
    first_right: Levels
    error_own: float
    error_all: float
    bins: Sequence[Bin | None]


def figures_of(answers: Sequence[Answer]) -> Figures:
    by_kind = {kind: [one for one in answers if one.kind is kind] for kind in Kind}
    by_kind = {kind: found for kind, found in by_kind.items() if found}
    relevances = {kind: [one.judgement.relevance for one in found] for kind, found in by_kind.items()}
    bins = _bins([one for one in answers if one.kind is not Kind.RENAMED])
    own = by_kind[Kind.ANSWERED]
    return Figures(
        counts={kind: len(found) for kind, found in by_kind.items()},
        auc={
            kind: auc(relevances[Kind.ANSWERED], found)
            for kind, found in relevances.items()
            if kind is not Kind.ANSWERED
        },
        mean={kind: sum(found) / len(found) for kind, found in relevances.items()},
        levels={kind: _levels(found) for kind, found in by_kind.items()},
        by_category={
            category: _levels([one for one in own if one.category == category])
            for category in dict.fromkeys(one.category for one in own)
        },
        first_right=_levels([one for one in own if any(one.right[:1])]),
        error_own=calibration_error(_bins([one for one in answers if one.kind.own])),
        error_all=calibration_error(bins),
        bins=bins,
    )


def print_figures(found: Mapping[str, Figures]) -> None:
    levels = [level.value for level in EvidenceLevel]
    print("\n" + table(("set", "asked", "questions", "AUC", "mean", *levels), _rows(found)))
    print("\n" + table(("set", "answered questions", *levels), _answered_rows(found)))
    print("\n" + table(("calibration error", *found), [_errors("its own questions", found, own=True),
                                                     _errors("with others'", found, own=False)]))  # fmt: skip
    header = ("relevance", *(f"{name}: mean, answered (weight)" for name in found))
    print("\n" + table(header, [_reliability_row(number, found) for number in range(BINS)]) + "\n")


def print_ways(found: Mapping[Arms, Mapping[str, Figures]]) -> None:
    """Print what a search tells if only some of the arms take part."""
    kinds = (Kind.UNANSWERED, Kind.OFF_TOPIC, Kind.OTHER_SCOPE, Kind.OTHER_SET)
    rows = [
        (
            name,
            arms.value,
            *(f"{figures.auc[kind]:.3f}" if kind in figures.auc else "" for kind in kinds),
            *(f"{figures.levels[Kind.ANSWERED][level]:.2f}" for level in EvidenceLevel),
            f"{figures.error_all:.3f}",
        )
        for arms, of_arms in found.items()
        for name, figures in of_arms.items()
    ]
    of_answered = (f"answered, {level.value}" for level in EvidenceLevel)
    header = ("set", "searched by", *(f"AUC, {kind.value}" for kind in kinds), *of_answered, "calibration error")
    print(table(header, rows) + "\n")


def _levels(answers: Sequence[Answer]) -> Levels:
    """The share of each level; zeros without answers."""
    found = [one.judgement.evidence for one in answers]
    return {level: found.count(level) / max(len(found), 1) for level in EvidenceLevel}


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


def _answered_rows(found: Mapping[str, Figures]) -> list[Sequence[str]]:
    return [
        (name, which, *(f"{rate:.3f}" for rate in levels.values()))
        for name, figures in found.items()
        for which, levels in {**figures.by_category, "all whose first hit is right": figures.first_right}.items()
    ]


def _errors(which: str, found: Mapping[str, Figures], *, own: bool) -> Sequence[str]:
    return which, *(f"{figures.error_own if own else figures.error_all:.3f}" for figures in found.values())


def _reliability_row(number: int, found: Mapping[str, Figures]) -> Sequence[str]:
    cells = [figures.bins[number] for figures in found.values()]
    return (
        f"{number / BINS:.1f} to {(number + 1) / BINS:.1f}",
        *("" if one is None else f"{one.relevance:.2f} {one.answered:.2f} ({one.weight:.0f})" for one in cells),
    )
