"""One data set: stored, searched with every method of the plan, and scored."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.retrieval.ablation import measure_ablation
from benchmarks.retrieval.certainty import Estimate, Table, differences, estimates
from benchmarks.retrieval.data_sets import DataSet
from benchmarks.retrieval.over_http import agreement, measure_over_http, names_in
from benchmarks.retrieval.own import ARMS, SOUVENIR, EngineSearcher, costs_of, opened, store
from benchmarks.retrieval.packages.environments import PACKAGES, PackageFailed
from benchmarks.retrieval.packages.host import measure_package
from benchmarks.retrieval.peers import measure_peers
from benchmarks.retrieval.rankings import Rankings, ask, by_category, metrics_of, scores_of
from benchmarks.retrieval.targets import Measured
from benchmarks.retrieval.vector_cache import CachedEmbedder
from souvenir.core.types import Fusion


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run was asked for."""

    data: Path
    sets: Sequence[str]
    http: bool = False
    ablation: bool = False
    packages: Path | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """One way to search: its means, and ours less its."""

    estimates: Mapping[str, Estimate]
    behind_ours: Mapping[str, Estimate]
    costs: Mapping[str, float]


@dataclass(slots=True)
class SetReport:
    """All that was measured of one set. `own` stands for the arms and parts of the service, `peers` for others."""

    data_set: DataSet
    souvenir: Line
    categories: Mapping[str, tuple[int, Mapping[str, Estimate]]]
    own: dict[str, Line] = field(default_factory=dict)
    peers: dict[str, Line] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    @property
    def measured(self) -> Measured:
        categories = {name: estimates for name, (_, estimates) in self.categories.items()}
        peers = {name: line.estimates for name, line in self.peers.items()}
        return Measured(self.souvenir.estimates, categories, peers)


def measure(data_set: DataSet, embedder: CachedEmbedder, plan: Plan) -> SetReport:
    with tempfile.TemporaryDirectory(prefix="souvenir-bench-") as folder:
        ours, others = _ask_ourselves(data_set, embedder, Path(folder) / "data", plan)
    own_scores = scores_of(ours, data_set)

    def line(rankings: Rankings) -> Line:
        return _line(rankings, scores_of(rankings, data_set), own_scores, metrics_of(data_set))

    report = SetReport(data_set, line(ours), _categories(own_scores, data_set))
    report.own = {rankings.name: line(rankings) for rankings in others}
    report.peers = {rankings.name: line(rankings) for rankings in measure_peers(data_set, embedder)}
    if plan.packages is not None:
        for package in PACKAGES:
            try:
                report.peers[package.name] = line(measure_package(package, data_set, embedder, plan.packages))
            except PackageFailed as error:
                report.failed[package.name] = str(error)
    return report


def _ask_ourselves(
    data_set: DataSet, embedder: CachedEmbedder, data_dir: Path, plan: Plan
) -> tuple[Rankings, list[Rankings]]:
    """The answers of the whole, and those of its arms; with `http`, of the service too, over the same folder."""
    over_http, on_the_wire = measure_over_http(data_set, data_dir) if plan.http else (None, {})
    costs: dict[str, float] = {}
    with opened(data_dir, embedder) as engine:
        if over_http is None:
            begin, before = time.perf_counter(), embedder.model_s
            names = store(data_set, engine)
            costs["stored a second"] = len(data_set) / (time.perf_counter() - begin - (embedder.model_s - before))
        else:
            names = names_in(engine, data_set, on_the_wire)
        ours = ask(SOUVENIR.name, EngineSearcher(engine, data_set.kind, names), data_set)
        costs |= costs_of(data_set, engine, embedder)
    others = _arms(data_set, embedder, data_dir, names)
    if plan.ablation:
        others += measure_ablation(data_set, embedder, data_dir, names, ours)
    if over_http is not None:
        same = {"same rankings as the engine": agreement(ours, over_http)}
        others.insert(0, replace(over_http, costs={**same, **over_http.costs}))
    return replace(ours, costs=costs), others


def _arms(data_set: DataSet, embedder: CachedEmbedder, data_dir: Path, names: Mapping[int, str]) -> list[Rankings]:
    found: list[Rankings] = []
    for fusion in Fusion:
        with opened(data_dir, embedder, fusion) as engine:
            found += [
                ask(arm.name, EngineSearcher(engine, data_set.kind, names, arm), data_set)
                for arm in ARMS
                if arm.fusion is fusion
            ]
    return found


def _categories(scores: Table, data_set: DataSet) -> Mapping[str, tuple[int, Mapping[str, Estimate]]]:
    metrics = metrics_of(data_set)
    return {
        category: (count, dict(zip(metrics, found, strict=True)))
        for category, count, found in by_category(scores, data_set)
    }


def _line(rankings: Rankings, scores: Table, own_scores: Table, metrics: Sequence[str]) -> Line:
    return Line(
        dict(zip(metrics, estimates(scores), strict=True)),
        dict(zip(metrics, differences(own_scores, scores), strict=True)),
        rankings.costs,
    )
