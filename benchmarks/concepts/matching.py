"""Which keys are matched as spellings, with the real model: on hand-written pairs, and in conversations.

    python -m benchmarks.concepts.matching --data FOLDER

What the rule joins in the conversations of FOLDER is printed to be read, since nobody has labelled it.
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.concepts.conversations import SETS, Conversation, concepts_of, read_conversations
from benchmarks.concepts.pairs import OTHER, SAME, pairs
from benchmarks.report import Target, print_targets, table, write_results
from souvenir.core.settings import Settings
from souvenir.core.types import Embedder, FloatVector
from souvenir.knowledge.concept_similarity import CANDIDATE_SIMILARITY, is_match, may_match
from souvenir.models.embedding.factory import embedder_of

PRECISION = 0.98
COSINES_ALONE = (0.85, 0.9, 0.95)
BATCH = 256


@dataclass(frozen=True, slots=True)
class Pair:
    key: str
    other: str
    cosine: float
    same: bool


def labelled(embedder: Embedder) -> list[Pair]:
    found = []
    for text, same in ((SAME, True), (OTHER, False)):
        of_text = pairs(text)
        ours, theirs = (embedder.embed_documents([pair[side] for pair in of_text]) for side in (0, 1))
        cosines = np.sum(ours * theirs, axis=1)
        found += [Pair(*pair, float(cosine), same) for pair, cosine in zip(of_text, cosines, strict=True)]
    return found


def rule(pair: Pair) -> bool:
    return may_match(pair.key, pair.other) and is_match(pair.cosine, None)


def cosine_from(least: float) -> Callable[[Pair], bool]:
    return lambda pair: pair.cosine >= least


def precision_and_recall(found: Sequence[Pair], joins: Callable[[Pair], bool]) -> tuple[float, float]:
    joined = [pair for pair in found if joins(pair)]
    right = sum(pair.same for pair in joined)
    return right / max(len(joined), 1), right / sum(pair.same for pair in found)


def joined_in(keys: Sequence[str], vectors: FloatVector) -> list[tuple[str, str, float]]:
    """The pairs of a conversation that are each other's nearest by the rule."""
    cosines = vectors @ vectors.T
    around: defaultdict[int, list[tuple[float, int]]] = defaultdict(list)
    for one, other in zip(*np.nonzero(np.triu(cosines >= CANDIDATE_SIMILARITY, 1)), strict=True):
        if may_match(keys[one], keys[other]):
            around[int(one)].append((float(cosines[one, other]), int(other)))
            around[int(other)].append((float(cosines[one, other]), int(one)))
    pairs = {one: _pair(others) for one, others in around.items()}
    return [
        (keys[one], keys[other], float(cosines[one, other]))
        for one, other in pairs.items()
        if other is not None and one < other and pairs[other] == one
    ]


def _pair(others: Sequence[tuple[float, int]]) -> int | None:
    (cosine, nearest), *rest = sorted(others, reverse=True)
    return nearest if is_match(cosine, rest[0][0] if rest else None) else None


def print_labelled(found: Sequence[Pair]) -> dict[str, tuple[float, float]]:
    joins: dict[str, Callable[[Pair], bool]] = {"the rule": rule}
    joins |= {f"cosine from {least}": cosine_from(least) for least in COSINES_ALONE}
    scores = {name: precision_and_recall(found, join) for name, join in joins.items()}
    print(f"{sum(pair.same for pair in found)} pairs of one thing, {sum(not pair.same for pair in found)} of two\n")
    print(table(("", "precision", "recall"), [(name, f"{p:.3f}", f"{r:.3f}") for name, (p, r) in scores.items()]))
    for title, same in (("joined wrongly", False), ("missed", True)):
        shown = [
            f"{pair.key} = {pair.other} ({pair.cosine:.2f})" for pair in found if pair.same is same is not rule(pair)
        ]
        print(f"\n{title}: {'; '.join(shown)}")
    return scores


def print_joined(embedder: Embedder, conversation: Conversation) -> int:
    keys = [concept.key for concept in concepts_of(conversation.texts)]
    vectors = np.concatenate([embedder.embed_documents(keys[at : at + BATCH]) for at in range(0, len(keys), BATCH)])
    joined = joined_in(keys, vectors)
    shown = "; ".join(f"{one} = {other} ({cosine:.2f})" for one, other, cosine in joined)
    print(f"\n{conversation.name}: {len(joined)} pairs of {len(keys)} concepts\n  {shown}")
    return len(joined)


def run(data: Path) -> bool:
    with closing(embedder_of(Settings(query_cache_size=0))) as embedder:
        scores = print_labelled(labelled(embedder))
        joined = sum(print_joined(embedder, conversation) for conversation in read_conversations(data, SETS))
    targets = [Target("precision on pairs made by hand", scores["the rule"][0], PRECISION, at_least=True)]
    print_targets(targets)
    print(f"\n{write_results('concepts.matching', {'scores': scores, 'joined': joined}, targets)}")
    return all(target.met for target in targets)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder a data set")
    return 0 if run(parser.parse_args().data) else 1


if __name__ == "__main__":
    sys.exit(main())
