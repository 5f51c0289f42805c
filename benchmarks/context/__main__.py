"""How much of the evidence a context shows within a token budget, and what it costs.

    python -m benchmarks.context --data FOLDER
    python -m benchmarks.context --data FOLDER --sets beam_chat
    python -m benchmarks.context --messages 100000 --folder /tmp/filled     the time of a context; keeps what it fills

FOLDER holds one folder a data set; docs/ranking.md describes the files. Each conversation is stored as an agent, and
its questions are asked through the engine with the real model, whose vectors are kept for the next run.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType

from benchmarks.context.coverage import ALL, Coverage, coverage, empty_or_doubted
from benchmarks.context.speed import CONTEXT, durations_ms
from benchmarks.report import RESULTS_DIR, Target, print_targets, progress, table, write_results
from benchmarks.retrieval.data_sets import DataSet, read_data_set
from benchmarks.retrieval.own import opened, store
from benchmarks.retrieval.vector_cache import CachedEmbedder
from souvenir.conversations.context import DEFAULT_MAX_TOKENS, Contexts
from souvenir.conversations.messages import Conversations
from souvenir.core.settings import Settings
from souvenir.models.embedding.factory import embedder_of

Budgets = Mapping[int, float]

WANTED: Mapping[str, Budgets] = MappingProxyType(
    {
        "locomo_turns": {500: 0.81, 1000: 0.86, 2000: 0.91, 4000: 0.94, 8000: 0.97},
        "beam_chat": {500: 0.56, 1000: 0.66, 2000: 0.73, 4000: 0.82, 8000: 0.89},
        "locomo_facts": {250: 0.79, 500: 0.86, 1000: 0.92, 2000: 0.96},
        "plain_questions": {250: 0.87, 500: 0.93, 1000: 0.93, 2000: 0.93},
    }
)
"""The share of the evidence that is wanted in the text, by set and token budget."""

WANTED_OF_COURSES: Mapping[str, float] = MappingProxyType({"event_ordering": 0.70, "summarization": 0.45})
"""Likewise of the questions for an order and for a summary, within `DEFAULT_MAX_TOKENS`."""

COURSES_SET = "beam_chat"

OFF_TOPIC_SET = "plain_questions"
"""Short memories, with questions on no subject of theirs."""

CONTEXT_P50_MS = 50.0
"""At 100,000 messages, of the version whose contexts had ten messages and five memories (docs/benchmarks.md)."""


def run(data: Path, names: Sequence[str]) -> tuple[dict[str, object], list[Target]]:
    embedder = CachedEmbedder(embedder_of(Settings()), RESULTS_DIR)
    found: dict[str, object] = {"model": embedder.model_id}
    targets: list[Target] = []
    for name in names:
        data_set = read_data_set(data / name)
        progress(f"{name}: {len(data_set)} documents, {len(data_set.questions)} questions")
        with _contexts(data_set, embedder) as contexts:
            covered = {budget: coverage(contexts, data_set, budget) for budget in WANTED[name]}
            if name == OFF_TOPIC_SET:
                empty, doubted = empty_or_doubted(contexts, data / name, DEFAULT_MAX_TOKENS)
                found["off topic"] = {"empty": empty, "empty or doubted": doubted}
                print(f"\nOf the questions off the topic, {empty:.2f} have an empty context; {doubted:.2f} with doubts")
                targets.append(Target("off topic: the context is empty or says so", doubted, 0.95, at_least=True))
        embedder.save()
        print_coverage(name, covered)
        found[name] = {str(budget): asdict(one) for budget, one in covered.items()}
        targets += [
            Target(f"{name}: evidence in {budget:,} tokens", covered[budget].shares[ALL], limit, at_least=True)
            for budget, limit in WANTED[name].items()
        ]
        if name == COURSES_SET:
            shares = covered[DEFAULT_MAX_TOKENS].shares
            targets += [
                Target(f"{name}: {one}, evidence in {DEFAULT_MAX_TOKENS:,} tokens", shares[one], limit, at_least=True)
                for one, limit in WANTED_OF_COURSES.items()
            ]
    return found, targets


@contextmanager
def _contexts(data_set: DataSet, embedder: CachedEmbedder) -> Iterator[Contexts]:
    with tempfile.TemporaryDirectory(prefix="souvenir-bench-") as folder, opened(Path(folder), embedder) as engine:
        store(data_set, engine)
        yield Contexts(engine, Conversations(engine))


def print_coverage(name: str, covered: Mapping[int, Coverage]) -> None:
    print(f"\n{name}: share of the evidence in the text, by tokens\n")
    categories = next(iter(covered.values())).shares
    rows = [(one, *(f"{of.shares[one]:.3f}" for of in covered.values())) for one in categories]
    rows.append(("mean tokens used", *(f"{of.tokens:.0f}" for of in covered.values())))
    print(table(("questions", *(f"{budget:,}" for budget in covered)), rows))


def run_speed(messages: int, questions: int, folder: Path) -> tuple[dict[str, object], list[Target]]:
    durations = durations_ms(messages, questions, folder)
    print(f"\nMilliseconds at {messages:,} messages, embedding and the answer's JSON included\n")
    rows = [(verb, f"{of['p50']:.1f}", f"{of['p95']:.1f}") for verb, of in durations.items()]
    print(table(("", "p50", "p95"), rows))
    target = Target("p50 of a context, ms", durations[CONTEXT]["p50"], CONTEXT_P50_MS)
    return {"messages": messages, "durations_ms": durations}, [target]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with one folder a data set")
    parser.add_argument("--sets", nargs="+", choices=WANTED, default=list(WANTED), help="sets (default: all)")
    parser.add_argument("--messages", type=int, help="measure the time of a context with so many messages")
    parser.add_argument("--questions", type=int, default=100, help="contexts that are timed")
    parser.add_argument("--folder", type=Path, help="where the filled data stays for the next run")
    arguments = parser.parse_args()
    if arguments.data is None and arguments.messages is None:
        parser.error("give --data, --messages or both")
    found: dict[str, object] = {}
    targets: list[Target] = []
    if arguments.data is not None:
        found, targets = run(arguments.data, arguments.sets)
    if arguments.messages is not None:
        with tempfile.TemporaryDirectory(prefix="souvenir-bench-") as temporary:
            folder = arguments.folder or Path(temporary)
            folder.mkdir(parents=True, exist_ok=True)
            figures, of_speed = run_speed(arguments.messages, arguments.questions, folder)
            found, targets = {**found, **figures}, [*targets, *of_speed]
    print_targets(targets)
    print(f"\n{write_results('context', found, targets)}")
    return 0 if all(target.met for target in targets) else 1


if __name__ == "__main__":
    sys.exit(main())
