"""Output of a run for one set: tables, and figures for the result file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from benchmarks.report import table
from benchmarks.retrieval.certainty import Estimate
from benchmarks.retrieval.rankings import metrics_of
from benchmarks.retrieval.run import Line, SetReport

INTERVALS = ("recall@10", "NDCG@10")


def print_report(report: SetReport) -> None:
    metrics = metrics_of(report.data_set)
    lines = {"souvenir": report.souvenir, **report.own, **report.peers}
    rows = [(name, *(str(line.estimates[metric]) for metric in metrics)) for name, line in lines.items()]
    print("\n" + table((report.data_set.name, *metrics), rows) + "\n")
    _print_differences(report)
    _print_categories(report)
    _print_costs(lines)
    for name, reason in report.failed.items():
        print(f"{name} could not run: {reason}\n")


def figures(report: SetReport) -> dict[str, Any]:
    return {
        "documents": len(report.data_set),
        "questions": len(report.data_set.questions),
        "souvenir": asdict(report.souvenir),
        "own": {name: asdict(line) for name, line in report.own.items()},
        "peers": {name: asdict(line) for name, line in report.peers.items()},
        "failed": report.failed,
        "categories": {
            name: {"questions": count, **{metric: asdict(one) for metric, one in found.items()}}
            for name, (count, found) in report.categories.items()
        },
    }


def _print_differences(report: SetReport) -> None:
    rows = [
        (name, *(_signed(line.behind_ours[metric]) for metric in INTERVALS))
        for name, line in {**report.own, **report.peers}.items()
    ]
    print(table(("souvenir less", *INTERVALS), rows) + "\n")


def _print_categories(report: SetReport) -> None:
    if len(report.categories) < 2:
        return
    metrics = metrics_of(report.data_set)
    rows = [
        (name, str(count), *(str(found[metric]) for metric in metrics))
        for name, (count, found) in report.categories.items()
    ]
    print(table(("category", "questions", *metrics), rows) + "\n")


def _print_costs(lines: Mapping[str, Line]) -> None:
    rows = [
        (name, "; ".join(f"{what} {cost:,.1f}" for what, cost in line.costs.items()))
        for name, line in lines.items()
        if line.costs
    ]
    print(table(("", "costs"), rows) + "\n")


def _signed(difference: Estimate) -> str:
    return f"{difference.mean:+.3f} ({difference.low:+.3f} to {difference.high:+.3f})"
