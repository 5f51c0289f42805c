"""Output of a run: tables, and figures for the result file. Every line names the measured system."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from math import isnan
from typing import Any

from benchmarks.extraction.accounts import Account
from benchmarks.extraction.corrections import TOP_K, PairFigures, figures_by_kind
from benchmarks.extraction.data_sets import PairKind
from benchmarks.extraction.facts import FactFigures, Tally, share
from benchmarks.extraction.matching import COSINE, THRESHOLDS
from benchmarks.extraction.types import CATEGORIES, TypeFigures
from benchmarks.report import table


@dataclass(frozen=True, slots=True)
class Measured:
    """All that was measured of one learner."""

    name: str
    facts: FactFigures
    pairs: PairFigures
    types: TypeFigures
    account: Account


def print_measured(measured: Sequence[Measured]) -> None:
    print(f"\nMatches: {', '.join(f'{name} ≥ {threshold:g}' for name, threshold in THRESHOLDS.items())}.\n")
    first = measured[0]
    if facts := first.facts.facts[COSINE].wanted:
        _print(f"{facts:,} facts of conversations", measured, lambda one: _of_facts(one.facts))
    for kind in PairKind:
        if pairs := first.pairs.count(kind):
            _print(f"{pairs} {kind.value}s", measured, partial(_of_pairs, kind=kind))
    if statements := first.types.wanted.total():
        _print(f"{statements} statements of paragraphs", measured, lambda one: _of_types(one.types))
    _print("cost and account", measured, lambda one: one.account.lines())


def figures(measured: Sequence[Measured]) -> Mapping[str, Any]:
    return {
        one.name: {
            "facts": {name: _tally(one.facts, name) for name in THRESHOLDS},
            "learned": one.facts.learned,
            "quoted": share(one.facts.quoted, one.facts.learned),
            "quote in the evidence": share(one.facts.located, one.facts.locatable),
            "pairs": figures_by_kind(one.pairs),
            "types": {
                "wanted": one.types.wanted,
                "found": one.types.found,
                "typed": one.types.typed,
                "learned": one.types.learned,
            },
            "account": asdict(one.account),
        }
        for one in measured
    }


def _tally(facts: FactFigures, measure: str) -> Mapping[str, float]:
    learned, standing = facts.facts[measure], facts.standing[measure]
    return {
        "recall": learned.recall,
        "precision": learned.precision,
        "recall of what stands": standing.recall,
        "precision of what stands": standing.precision,
    }


def _print(title: str, measured: Sequence[Measured], lines_of: Callable[[Measured], Mapping[str, str]]) -> None:
    """A line a figure, a column a learner."""
    columns = [lines_of(one) for one in measured]
    rows = [(name, *(column[name] for column in columns)) for name in columns[0]]
    print(table((title, *(one.name for one in measured)), rows) + "\n")


def _of_facts(facts: FactFigures) -> Mapping[str, str]:
    return {
        "learned": f"{facts.learned:,}",
        **_of_tallies("", facts.facts),
        "memories that stand at the end": f"{facts.standing[COSINE].found:,}",
        **_of_tallies(" of what stands", facts.standing),
        "quote found in the transcript": _number(share(facts.quoted, facts.learned)),
        "quote in a turn of the evidence": _number(share(facts.located, facts.locatable)),
    }


def _of_tallies(of_what: str, tallies: Mapping[str, Tally]) -> Mapping[str, str]:
    return {
        f"{figure}{of_what}, {name}": _number(getattr(tally, figure))
        for name, tally in tallies.items()
        for figure in ("recall", "precision")
    }


def _of_pairs(measured: Measured, kind: PairKind) -> Mapping[str, str]:
    pairs = measured.pairs
    names = {
        "learned": "both statements learned",
        "replaced": "older one replaced",
        "flagged": "older one flagged as a conflict",
        "found": f"newer one found in the first {TOP_K}",
        "newer_first": "newer one found before the older",
    }
    wrong = {"memories touched wrongly": str(pairs.wrong(kind))}
    return {line: _number(pairs.share(kind, name)) for name, line in names.items()} | wrong


def _of_types(types: TypeFigures) -> Mapping[str, str]:
    return {
        "learned": f"{types.learned:,}",
        "recall, cosine": _number(types.recall),
        **{
            f"recall of {types.wanted[type_]} {type_}s": _number(share(types.found[type_], types.wanted[type_]))
            for type_ in CATEGORIES
        },
        "found under a category that fits": _number(types.typed_recall),
    }


def _number(value: float) -> str:
    return "–" if isnan(value) else f"{value:.3f}"
