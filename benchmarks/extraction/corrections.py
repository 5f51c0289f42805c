"""Pairs of statements: the first one should be superseded, and a question should rank the second one before it.

The statements of one person are one source: first those that come first, then those that correct or contradict them.
In the same source stand memories of other people's matters (the reference texts of the paragraphs): whatever a decision
does to one of those, or to the memory of another pair, is wrong.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from benchmarks.extraction.data_sets import Pair, PairKind, Statement
from benchmarks.extraction.facts import share
from benchmarks.extraction.learners import TOUCHING, Learned, Learner, Said, search, store
from benchmarks.report import progress
from benchmarks.service import Client

NAMESPACE = "pairs"
TOP_K = 5
BYSTANDERS_AT = datetime(2023, 1, 1, tzinfo=UTC)
"""Before every statement."""
REPLACING = frozenset({"update", "delete"})
FLAGGING = frozenset({"conflict"})


@dataclass(frozen=True, slots=True)
class PairOutcome:
    """:param learned: Whether a memory came of both sides.

    :param replaced: Whether the second statement updated or deleted a memory of the first.
    :param flagged: Whether it was set against one as a conflict.
    :param wrong: Memories that either side touched and that are none of the pair's first statement.
    :param newer_first: Whether the question finds a memory of the second statement, and none of the first before it.
    :param found: Whether it finds one of the second at all.
    """

    kind: PairKind
    learned: bool
    replaced: bool
    flagged: bool
    wrong: int
    newer_first: bool
    found: bool


@dataclass(slots=True)
class PairFigures:
    outcomes: list[PairOutcome] = field(default_factory=list)

    def count(self, kind: PairKind) -> int:
        return len(self._of(kind))

    def share(self, kind: PairKind, name: str) -> float:
        """Of the pairs of that kind, those whose outcome says so by the field of that name."""
        of_kind = self._of(kind)
        return share(sum(bool(getattr(outcome, name)) for outcome in of_kind), len(of_kind))

    def wrong(self, kind: PairKind) -> int:
        return sum(outcome.wrong for outcome in self._of(kind))

    def _of(self, kind: PairKind) -> Sequence[PairOutcome]:
        return [outcome for outcome in self.outcomes if outcome.kind is kind]


def measure_pairs(
    learner: Learner, pairs: Sequence[Pair], bystanders: Sequence[str], client: Client
) -> tuple[PairFigures, list[Learned]]:
    by_scope: defaultdict[str, list[Pair]] = defaultdict(list)
    for pair in pairs:
        by_scope[pair.scope].append(pair)
    figures, jobs = PairFigures(), []
    for scope, of_scope in by_scope.items():
        store(client, NAMESPACE, scope, bystanders, BYSTANDERS_AT)
        firsts = [learner.learn(_said(scope, pair.first)) for pair in of_scope]
        seconds = [learner.learn(_said(scope, pair.second)) for pair in of_scope]
        jobs += [*firsts, *seconds]
        for pair, first, second in zip(of_scope, firsts, seconds, strict=True):
            hits = search(client, NAMESPACE, scope, pair.question, TOP_K)
            figures.outcomes.append(outcome_of(pair.kind, first, second, hits))
    progress(f"{learner.name}: {len(pairs)} pairs of {len(by_scope)} people")
    return figures, jobs


def outcome_of(kind: PairKind, first: Learned, second: Learned, hits: Sequence[int]) -> PairOutcome:
    """:param hits: Ids of what the question finds, best first."""
    older, newer = first.holding, second.holding
    touched = _touched(second)
    rank_of_newer = next((rank for rank, id_ in enumerate(hits) if id_ in newer), None)
    rank_of_older = next((rank for rank, id_ in enumerate(hits) if id_ in older - newer), len(hits))
    return PairOutcome(
        kind,
        learned=bool(older) and (bool(newer) or any(target in older for target, _ in touched)),
        replaced=any(target in older and action in REPLACING for target, action in touched),
        flagged=any(target in older and action in FLAGGING for target, action in touched),
        wrong=len({target for target, _ in [*touched, *_touched(first)]} - older),
        newer_first=rank_of_newer is not None and rank_of_newer < rank_of_older,
        found=rank_of_newer is not None,
    )


def figures_by_kind(figures: PairFigures) -> Mapping[str, Mapping[str, float]]:
    names = ("learned", "replaced", "flagged", "newer_first", "found")
    return {
        kind.value: {
            "pairs": figures.count(kind),
            **{name: figures.share(kind, name) for name in names},
            "wrongly touched": figures.wrong(kind),
        }
        for kind in PairKind
    }


def _touched(learned: Learned) -> list[tuple[int, str]]:
    return [(fact.target, fact.action) for fact in learned.facts if fact.target is not None and fact.action in TOUCHING]


def _said(scope: str, statement: Statement) -> Said:
    return Said(NAMESPACE, scope, [f"User: {text}" for text in statement.texts], statement.at)
