"""Quality of search on labelled data, compared with simple baselines and with other memory packages.

    python -m benchmarks.retrieval --data FOLDER
    python -m benchmarks.retrieval --data FOLDER --sets locomo_turns beam_chat --packages /tmp/packages
    python -m benchmarks.retrieval --data FOLDER --sets locomo_turns --http
    python -m benchmarks.retrieval --data FOLDER --ablation

FOLDER holds one folder a data set; docs/ranking.md describes the files and where the sets come from. Texts go through
the engine's public verbs (with `--http` through the real service, on a free port of this machine) and the real
embedding model, whose vectors are kept for the next run.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.report import RESULTS_DIR, print_targets, progress, write_results
from benchmarks.retrieval.data_sets import read_data_set
from benchmarks.retrieval.packages.environments import installed
from benchmarks.retrieval.run import Plan, SetReport, measure
from benchmarks.retrieval.tables import figures, print_report
from benchmarks.retrieval.targets import targets_of
from benchmarks.retrieval.vector_cache import CachedEmbedder
from souvenir.core.settings import Settings
from souvenir.models.embedding.factory import embedder_of

SETS = ("plain_questions", "locomo_turns", "locomo_facts", "beam_chat", "cranfield", "med", "memdaily_zh")


def run(plan: Plan) -> bool:
    embedder = CachedEmbedder(embedder_of(Settings(query_cache_size=0)), RESULTS_DIR)
    progress(f"model {embedder.model_id}, token vectors {embedder.token_space or 'none'}")
    reports: list[SetReport] = []
    for name in plan.sets:
        data_set = read_data_set(plan.data / name)
        progress(f"{name}: {len(data_set)} documents, {len(data_set.questions)} questions")
        reports.append(measure(data_set, embedder, plan))
        embedder.save()
        print_report(reports[-1])
    targets = [target for report in reports for target in targets_of(report.data_set.name, report.measured)]
    print_targets(targets)
    found = {
        "model": embedder.model_id,
        "packages": {} if plan.packages is None else installed(plan.packages),
        "sets": {report.data_set.name: figures(report) for report in reports},
    }
    print(f"\n{write_results('retrieval', found, targets)}")
    return all(target.met for target in targets)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder a data set")
    parser.add_argument("--sets", nargs="+", default=SETS, help=f"names of folders in it (default: {' '.join(SETS)})")
    parser.add_argument("--http", action="store_true", help="store and ask through the real service, then compare")
    parser.add_argument("--ablation", action="store_true", help="also turn each part of the score off in turn")
    parser.add_argument(
        "--packages", type=Path, help="also measure other memory packages, in environments made in this folder"
    )
    arguments = parser.parse_args()
    return 0 if run(Plan(**vars(arguments))) else 1


if __name__ == "__main__":
    sys.exit(main())
