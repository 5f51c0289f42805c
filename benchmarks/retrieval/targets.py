"""Targets of search on the development sets, and their tolerances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benchmarks.report import Target
from benchmarks.retrieval.certainty import Estimate
from benchmarks.retrieval.metrics import DOCUMENT_METRICS

JUDGED = DOCUMENT_METRICS[1:4]
TOLERANCE = 0.01
LOSS_ALLOWED = 0.005


@dataclass(frozen=True, slots=True)
class Measured:
    """The means of one set by metric: those of the service, overall and by category, and those of each peer."""

    own: Mapping[str, Estimate]
    categories: Mapping[str, Mapping[str, Estimate]]
    peers: Mapping[str, Mapping[str, Estimate]]


EXPECTED: Mapping[str, tuple[float, float, float]] = {
    "locomo_turns": (0.793, 0.854, 0.722),
    "locomo_facts": (0.766, 0.840, 0.717),
    "beam_chat": (0.571, 0.667, 0.578),
}
"""recall@5, recall@10 and NDCG@10 of the same arithmetic, done slowly, on the data that chose its constants."""

FIRST_HITS = {"plain_questions": {"plain": 0.96, "paraphrase": 0.47}}
"""Least recall@1 of categories of questions."""

BEST_PUBLISHED = {"locomo_turns": 0.73}
"""recall@10 of turns without a language model, with a hosted embedding model."""


def targets_of(name: str, measured: Measured) -> Iterator[Target]:
    """A set of conversations must be ahead of every peer, one of texts not behind any."""
    for metric, expected in zip(JUDGED, EXPECTED.get(name, ()), strict=False):
        yield Target(f"{name}: {metric}", measured.own[metric].mean, expected - TOLERANCE, at_least=True)
    if name in BEST_PUBLISHED:
        yield Target(f"{name}: recall@10, best published", measured.own["recall@10"].mean, BEST_PUBLISHED[name], True)
    for category, expected in FIRST_HITS.get(name, {}).items():
        first = measured.categories[category]["recall@1"].mean
        yield Target(f"{name}: recall@1, {category}", first, expected, at_least=True)
    least = 0.0 if name in EXPECTED else -LOSS_ALLOWED
    for metric in JUDGED:
        peer = max(measured.peers, key=lambda peer: measured.peers[peer][metric].mean, default=None)
        if peer is not None:
            margin = measured.own[metric].mean - measured.peers[peer][metric].mean
            yield Target(f"{name}: {metric} less that of {peer}", margin, least, at_least=True)
