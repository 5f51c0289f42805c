"""Whether `evidence` of a context tells questions that a conversation answers from those that it does not.

    python -m benchmarks.context --data FOLDER
    python -m benchmarks.context --data FOLDER --sets beam_chat --scopes 1

FOLDER holds one folder a data set; docs/benchmarks.md describes the files. Each conversation is stored as an agent and
asked through `Contexts` with the real model, whose vectors are kept for the next run. AUC is the share of pairs in
which the answered question has the higher best cosine.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from benchmarks.context.talks import Kind, Talk, read_talks
from benchmarks.report import RESULTS_DIR, Target, print_targets, progress, table, write_results
from benchmarks.retrieval.vector_cache import CachedEmbedder
from memory_engine import MemoryEngine
from souvenir.conversation.context import ContextQuery, Contexts
from souvenir.conversation.evidence import Evidence
from souvenir.conversation.messages import Conversations
from souvenir.embedding.factory import embedder_of
from souvenir.settings import Settings
from souvenir.types import Embedder, Scope

SETS = ("locomo_turns", "beam_chat")
TURNS_AT_ONCE = 200
FALSE_NONE_ALLOWED, FALSE_STRONG_ALLOWED = 0.05, 0.10


@dataclass(slots=True)
class Answers:
    """Of one set and one kind of question."""

    levels: list[Evidence] = field(default_factory=list)
    cosines: list[float] = field(default_factory=list)

    def rate(self, level: Evidence) -> float:
        return self.levels.count(level) / len(self.levels)


Found = Mapping[Kind, Answers]


def ask(talk: Talk, engine: MemoryEngine, found: Mapping[Kind, Answers]) -> None:
    """Store a conversation as an agent, and ask it everything."""
    scope, conversations = Scope(talk.scope.replace("/", " ")), Conversations(engine)
    for start in range(0, len(talk.turns), TURNS_AT_ONCE):
        conversations.add(scope, talk.turns[start : start + TURNS_AT_ONCE])
    contexts = Contexts(engine, conversations, max_messages=Settings().max_context_messages)
    for question in talk.questions:
        context = contexts.build(scope, ContextQuery(question.text))
        found[question.kind].levels.append(context.evidence)
        found[question.kind].cosines.append(max((hit.similarity or 0.0 for hit in context.messages), default=0.0))


def auc(higher: Sequence[float], lower: Sequence[float]) -> float:
    """The share of pairs in which the first is higher; equal ones count half."""
    first, second = np.array(higher)[:, None], np.array(lower)[None, :]
    return float((first > second).mean() + 0.5 * (first == second).mean())


def run(folder: Path, names: Sequence[str], scopes: int | None) -> bool:
    embedder = CachedEmbedder(embedder_of(Settings()), RESULTS_DIR)
    found: defaultdict[str, defaultdict[Kind, Answers]] = defaultdict(lambda: defaultdict(Answers))
    for talk in read_talks(folder, names, scopes=scopes):
        progress(f"{talk.set_name}: {talk.scope}, {len(talk.turns)} turns, {len(talk.questions)} questions")
        _ask_apart(talk, embedder, found[talk.set_name])
        embedder.save()
    print("\n" + table(("set", "questions", "", "AUC", "strong", "weak", "none"), _rows(found)) + "\n")
    targets = [target for name in found for target in _targets(name, found[name])]
    print_targets(targets)
    print(f"\n{write_results('context', {'rates': _figures(found)}, targets)}")
    return all(target.met for target in targets)


def _ask_apart(talk: Talk, embedder: Embedder, found: Mapping[Kind, Answers]) -> None:
    with (
        tempfile.TemporaryDirectory(prefix="souvenir-bench-") as data_dir,
        closing(MemoryEngine.open(Settings(data_dir=Path(data_dir)), embedder)) as engine,
    ):
        ask(talk, engine, found)


def _rows(found: Mapping[str, Found]) -> list[Sequence[str]]:
    return [
        (
            name,
            kind.value,
            str(len(answers.levels)),
            "" if kind is Kind.ANSWERED else f"{auc(kinds[Kind.ANSWERED].cosines, answers.cosines):.3f}",
            *(f"{answers.rate(level):.2f}" for level in Evidence),
        )
        for name, kinds in found.items()
        for kind in Kind
        if (answers := kinds.get(kind)) is not None
    ]


def _figures(found: Mapping[str, Found]) -> dict[str, dict[str, dict[str, float]]]:
    return {
        name: {kind.value: {level.value: answers.rate(level) for level in Evidence} for kind, answers in kinds.items()}
        for name, kinds in found.items()
    }


def _targets(name: str, found: Found) -> list[Target]:
    answered, other = found[Kind.ANSWERED], found[Kind.OTHER_SCOPE]
    return [
        Target(f"{name}: answered, evidence none", answered.rate(Evidence.NONE), FALSE_NONE_ALLOWED),
        Target(f"{name}: of another conversation, strong", other.rate(Evidence.STRONG), FALSE_STRONG_ALLOWED),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder a data set")
    parser.add_argument("--sets", nargs="+", default=SETS, help=f"names of folders in it (default: {' '.join(SETS)})")
    parser.add_argument("--scopes", type=int, help="conversations of each set (default: all)")
    arguments = parser.parse_args()
    return 0 if run(arguments.data, arguments.sets, arguments.scopes) else 1


if __name__ == "__main__":
    sys.exit(main())
