"""Search by text with facts compared with either alone, on labelled data, through the engine's public methods.

    python -m benchmarks.facts --data FOLDER
    python -m benchmarks.facts --data FOLDER --cases session cranfield

FOLDER holds `locomo_turns` and `locomo_facts` (the same conversations), `cranfield` and `med`, or some of them;
docs/ranking.md describes their files. Facts are labelled ones, as a model would write them, or the sentences of the
text, as they are without a model. The real model embeds everything; its vectors are kept for the next run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.facts.cases import Case, read_cases
from benchmarks.facts.ways import TEXT, WAYS, WITH_FACTS, WITH_SENTENCES, answers
from benchmarks.report import RESULTS_DIR, Target, print_targets, progress, table, write_results
from benchmarks.retrieval.certainty import Table, differences, estimates
from benchmarks.retrieval.metrics import document_scores
from benchmarks.retrieval.vector_cache import CachedEmbedder
from souvenir.core.settings import Settings
from souvenir.models.embedding.factory import embedder_of

METRICS = ("recall@1", "recall@5", "recall@10", "NDCG@10")
PARITY = -0.005
"""What text with facts may find less than the text alone, in recall@10."""


def measure(case: Case, embedder: CachedEmbedder) -> dict[str, Table]:
    """Every question by METRICS, a table a way; ways that take labelled facts only where there are any."""
    return {
        way.name: np.array(
            [
                document_scores(found, question.relevant)[: len(METRICS)]
                for found, question in zip(answers(case, way, embedder), case.questions, strict=True)
            ]
        )
        for way in WAYS
        if case.labelled or not way.labelled
    }


def print_case(case: Case, scores: Mapping[str, Table]) -> None:
    ours = next(iter(scores.values()))
    rows = [
        (
            way,
            *(str(one) for one in estimates(of_way)),
            *(f"{one.mean:+.3f} ({one.low:+.3f} to {one.high:+.3f})" for one in differences(ours, of_way)[1:]),
        )
        for way, of_way in scores.items()
    ]
    behind = [f"first less it, {metric}" for metric in METRICS[1:]]
    print(f"\n{case.name}: {len(case.tellings)} memories, {len(case.questions)} questions\n")
    print(table(("", *METRICS, *behind), rows))


def targets_of(case: Case, scores: Mapping[str, Table]) -> list[Target]:
    recall = METRICS.index("recall@10")
    text = float(scores[TEXT.name][:, recall].mean())
    return [
        Target(f"{case.name}: {way.name}, recall@10 less the text's alone", found - text, PARITY, at_least=True)
        for way in (WITH_FACTS, WITH_SENTENCES)
        if way.name in scores and (found := float(scores[way.name][:, recall].mean()))
    ]


def figures_of(case: Case, scores: Mapping[str, Table]) -> dict[str, Any]:
    ways = {way: dict(zip(METRICS, map(asdict, estimates(of_way)), strict=True)) for way, of_way in scores.items()}
    return {
        "memories": len(case.tellings),
        "facts": sum(len(telling.facts) for telling in case.tellings),
        "questions": len(case.questions),
        "ways": ways,
    }


def run(data: Path, chosen: Sequence[str]) -> bool:
    figures: dict[str, Any] = {}
    targets: list[Target] = []
    with closing(embedder_of(Settings(query_cache_size=0))) as model:
        embedder = CachedEmbedder(model, RESULTS_DIR)
        for case in read_cases(data):
            if chosen and case.name not in chosen:
                continue
            progress(f"{case.name}: {len(case.tellings)} memories, {len(case.questions)} questions")
            scores = measure(case, embedder)
            embedder.save()
            print_case(case, scores)
            targets += targets_of(case, scores)
            figures[case.name] = figures_of(case, scores)
    print_targets(targets)
    print(f"\n{write_results('facts', {'model': embedder.model_id, 'cases': figures}, targets)}")
    return all(target.met for target in targets)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder a data set")
    parser.add_argument("--cases", nargs="+", default=(), help="names of cases as they are printed (default: all)")
    arguments = parser.parse_args()
    return 0 if run(arguments.data, arguments.cases) else 1


if __name__ == "__main__":
    sys.exit(main())
