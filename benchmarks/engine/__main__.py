"""Our engine compared with the baseline and with FAISS alone, on synthetic memories, in one run.

    python -m benchmarks.engine                    1k, 10k and 100k memories: some ten minutes
    python -m benchmarks.engine --sizes 1000 10000
    python -m benchmarks.engine --sizes 1000 1000000     half an hour and 12 GB of memory; a million has no baseline

Nothing is embedded: vectors are handed out. All sizes and all stores take turns, so that what else the machine does
hits them alike; figures are medians and 95th percentiles. docs/benchmarks.md says more.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from benchmarks.engine.candidate_cut import recall_of_cut
from benchmarks.engine.corpus import make_corpus
from benchmarks.engine.figures import print_figures, targets_of
from benchmarks.engine.rounds import BASELINE_UP_TO, ROUNDS, Case, Durations, run_round
from benchmarks.engine.sides import SCOPE, Baseline, FlatScan, Ours
from benchmarks.engine.startup import BEHIND, Starts, measure
from benchmarks.report import print_targets, progress, write_results
from souvenir.core.settings import Settings
from souvenir.models.embedding.factory import embedder_of

QUERIES = 500
SPARE = 2_000
STARTS = 3


def build(size: int, folder: Path, model_id: str) -> tuple[Case, Starts, float]:
    """A case with its stores filled; how our engine starts on it, and memories a second."""
    corpus = make_corpus(size, spare=SPARE, query_count=QUERIES, seed=size)
    settings = Settings(data_dir=folder / "ours")
    ours = Ours(corpus, settings, model_id)
    begin = time.perf_counter()
    ours.build()
    per_second = size / (time.perf_counter() - begin)
    ours.engine.close()
    progress(f"{size} memories: stored, {per_second:.0f} a second")
    without, *current = (measure(settings.data_dir) for _ in range(1 + STARTS))
    progress(
        f"{size} memories: start without a snapshot in {without.index_s:.2f} s, with in {current[0].index_s:.2f} s"
    )
    ours = Ours(corpus, settings, model_id)
    added = ours.add_unindexed(BEHIND)
    ours.engine.close()
    behind = measure(settings.data_dir)
    progress(f"{size} memories: start with a snapshot that lacks {BEHIND} passages in {behind.index_s:.2f} s")
    ours = Ours(corpus, settings, model_id)
    for memory_id in added:
        ours.engine.delete(SCOPE, memory_id)
    ours.engine.warm_up()
    baseline = Baseline(corpus, folder / "baseline") if size <= BASELINE_UP_TO else None
    progress(f"{size} memories: loaded")
    return Case(size, corpus, ours, baseline, FlatScan(corpus)), Starts(without, current, behind), per_second


def folder_mb(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20


def run(sizes: list[int], folder: Path) -> bool:
    model_id = embedder_of(Settings()).model_id
    cases: list[Case] = []
    starts: dict[int, Starts] = {}
    sizes_mb: dict[int, float] = {}
    per_second: dict[int, float] = {}
    for size in sizes:
        case, starts[size], per_second[size] = build(size, folder / str(size), model_id)
        cases.append(case)
        sizes_mb[size] = folder_mb(folder / str(size) / "ours")
    durations = Durations()
    for number in range(1, ROUNDS + 1):
        for case in cases:
            run_round(case, durations)
        medians = ", ".join(f"{durations.p50_ms(size, 'ours', 'search'):.2f} ms at {size}" for size in sizes)
        progress(f"round {number} of {ROUNDS}; our search so far {medians}")
    cut_recall = recall_of_cut(cases[-1])
    for case in cases:
        case.ours.engine.close()

    print_figures(sizes, durations, starts, per_second, sizes_mb)
    targets = targets_of(sizes, durations, starts, cut_recall)
    print_targets(targets)
    figures = {
        "sizes": sizes,
        "durations_ms": durations.summary(),
        "starts": {size: asdict(one) for size, one in starts.items()},
        "stored_per_second": per_second,
        "folder_mb": sizes_mb,
        "candidate_cut": {"size": sizes[-1], "recall_at_10": cut_recall},
    }
    print(f"\n{write_results('engine', figures, targets)}")
    return all(target.met for target in targets)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000], help="memories, in steps")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="souvenir-bench-") as folder:
        return 0 if run(sorted(arguments.sizes), Path(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
