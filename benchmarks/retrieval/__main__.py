"""What search finds: recall, NDCG and MRR of the hybrid, of either arm alone and of reciprocal rank fusion.

    python -m benchmarks.retrieval --data FOLDER
    python -m benchmarks.retrieval --data FOLDER --sets cranfield med

FOLDER holds one folder a data set; docs/benchmarks.md describes the files and where the sets come from. Texts go
through the engine's public verbs and the real embedding model; its vectors are kept for the next run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple
from pathlib import Path

from benchmarks.report import RESULTS_DIR, Target, print_targets, progress, table, write_results
from benchmarks.retrieval.arms import hybrid_margin, measure
from benchmarks.retrieval.data_sets import DataSet, read_data_set
from benchmarks.retrieval.metrics import Scores
from benchmarks.retrieval.vector_cache import CachedEmbedder
from souvenir.embedding.factory import embedder_of
from souvenir.settings import Settings

SETS = ("locomo_facts", "cranfield", "med", "memdaily_zh")
LOSS_ALLOWED = 0.005
SETS_WON = 2


def run(folder: Path, names: Sequence[str]) -> bool:
    embedder = CachedEmbedder(embedder_of(Settings()), RESULTS_DIR)
    found: dict[str, dict[str, Scores]] = {}
    for name in names:
        data_set = read_data_set(folder / name)
        progress(_sizes(data_set))
        with tempfile.TemporaryDirectory(prefix="souvenir-bench-") as data_dir:
            found[name] = measure(data_set, embedder, Path(data_dir))
        embedder.save()
        print("\n" + _table(found[name]) + "\n")
    targets = _targets(found)
    print_targets(targets)
    figures = {"sets": {name: {arm: asdict(scores) for arm, scores in arms.items()} for name, arms in found.items()}}
    print(f"\n{write_results('retrieval', figures, targets)}")
    return all(target.met for target in targets)


def _sizes(data_set: DataSet) -> str:
    documents = sum(map(len, data_set.documents.values()))
    scopes = len(data_set.documents)
    return f"{data_set.name}: {documents} documents in {scopes} namespaces, {len(data_set.questions)} questions"


def _table(arms: Mapping[str, Scores]) -> str:
    rows = [(arm, *(f"{value:.3f}" for value in astuple(scores))) for arm, scores in arms.items()]
    return table(("arm", "recall@5", "recall@10", "NDCG@10", "MRR@10"), rows)


def _targets(found: Mapping[str, Mapping[str, Scores]]) -> list[Target]:
    margins = {name: hybrid_margin(found[name]) for name in SETS if name in found}
    targets = [
        Target(f"{name}: recall@10 of the hybrid less the better arm's", margin, -LOSS_ALLOWED, at_least=True)
        for name, margin in margins.items()
    ]
    if len(margins) == len(SETS):
        won = sum(margin > 0 for margin in margins.values())
        targets.append(Target("sets on which the hybrid is above both arms", won, SETS_WON, at_least=True))
    return targets


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder a data set")
    parser.add_argument("--sets", nargs="+", default=SETS, help=f"names of folders in it (default: {' '.join(SETS)})")
    arguments = parser.parse_args()
    return 0 if run(arguments.data, arguments.sets) else 1


if __name__ == "__main__":
    sys.exit(main())
