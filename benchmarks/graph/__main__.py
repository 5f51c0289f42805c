"""The effect of personalised PageRank over shared rare concepts, added to the score of search.

    python -m benchmarks.graph --data FOLDER
    python -m benchmarks.graph --data FOLDER --sets locomo_turns beam_chat

FOLDER is that of benchmarks.retrieval. Concepts are what souvenir.concepts finds in the stored texts and in the
questions, by their keys. Search itself does not use any of this; docs/benchmarks.md says why.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.graph.measure import METRICS, WAYS, WEIGHTS, Measured, Way, measure
from benchmarks.report import RESULTS_DIR, progress, table, write_results
from benchmarks.retrieval.certainty import Estimate
from benchmarks.retrieval.data_sets import read_data_set
from benchmarks.retrieval.vector_cache import CachedEmbedder
from souvenir.core.settings import Settings
from souvenir.models.embedding.factory import embedder_of

SETS = ("locomo_turns", "locomo_facts", "beam_chat", "cranfield", "med", "memdaily_zh")

Choice = tuple[Way, float]


def best_of(sets: Sequence[Measured]) -> Choice:
    """The way and the weight that gain most where they may be chosen, in the mean of all metrics and the worst set."""
    choices = [(way, weight) for way in WAYS for weight in WEIGHTS if weight]
    return max(choices, key=lambda one: sum(_mean(each.gain(*one, kept_back=False)) for each in sets))


def _mean(gains: Sequence[Estimate]) -> float:
    return sum(one.mean for one in gains) / len(gains)


def print_sets(sets: Sequence[Measured]) -> None:
    print(
        "\n"
        + table(
            ("set", "concepts a document", "concepts", "that several mention", "questions kept back"),
            [
                (
                    one.name,
                    f"{one.concepts_a_document:.1f}",
                    f"{one.concepts:,}",
                    f"{one.shared:,}",
                    str(one.kept_back.sum()),
                )
                for one in sets
            ],
        )
    )


def print_gains(title: str, sets: Sequence[Measured], choices: Sequence[Choice]) -> None:
    print(
        f"\n{title}\n\n"
        + table(
            ("set", "way", "weight", *METRICS, *(f"gain {metric}" for metric in METRICS)),
            [
                (
                    one.name,
                    str(way),
                    f"{weight:g}",
                    *(str(found) for found in one.means(way, weight, kept_back=True)),
                    *(_signed(found) for found in one.gain(way, weight, kept_back=True)),
                )
                for one, (way, weight) in zip(sets, choices, strict=True)
            ],
        )
    )


def _signed(gain: Estimate) -> str:
    return f"{100 * gain.mean:+.1f} ({100 * gain.low:+.1f} to {100 * gain.high:+.1f})"


def run(data: Path, names: Sequence[str]) -> None:
    embedder = CachedEmbedder(embedder_of(Settings(query_cache_size=0)), RESULTS_DIR)
    sets: list[Measured] = []
    for name in names:
        data_set = read_data_set(data / name)
        progress(f"{name}: {len(data_set)} documents, {len(data_set.questions)} questions")
        sets.append(measure(data_set, embedder))
        embedder.save()
    print_sets(sets)
    own = [best_of([one]) for one in sets]
    print_gains("Each set's own best way and weight", sets, own)
    common = best_of(sets)
    print_gains("One way and weight for all", sets, [common] * len(sets))
    figures = {
        one.name: [
            {
                "way": str(way),
                "weight": weight,
                "chosen on": [found.mean for found in one.gain(way, weight, kept_back=False)],
                "kept back": [found.mean for found in one.gain(way, weight, kept_back=True)],
            }
            for way in WAYS
            for weight in WEIGHTS
        ]
        for one in sets
    }
    print(f"\n{write_results('graph', {'metrics': METRICS, 'gains': figures})}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder a data set")
    parser.add_argument("--sets", nargs="+", default=SETS, help=f"names of folders in it (default: {' '.join(SETS)})")
    arguments = parser.parse_args()
    run(arguments.data, arguments.sets)
    return 0


if __name__ == "__main__":
    sys.exit(main())
