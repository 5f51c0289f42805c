"""Hits lost by limiting the candidates: our first ten compared with those of a ranking over all passages."""

from __future__ import annotations

from unittest.mock import patch

from benchmarks.engine.rounds import Case
from benchmarks.engine.sides import SCOPE, TOP_K
from benchmarks.report import progress
from souvenir.retrieval import recall

QUERIES = 100
ROWS = 10_000_000
"""Rows that are scored at most without a cut, which limits the questions at a million memories to ten."""


def recall_of_cut(case: Case) -> float:
    """Share of the uncut ranking's first ten that the search finds, over some questions."""
    queries = range(min(QUERIES, ROWS // case.size))
    cut = [_hits(case, number) for number in queries]
    with patch.object(recall, "CANDIDATE_COUNT", case.size + case.corpus.spare):
        full = [_hits(case, number) for number in queries]
    found = sum(len(a & b) for a, b in zip(cut, full, strict=True)) / sum(map(len, full))
    progress(f"{case.size} memories: {found:.4f} of the first {TOP_K} without a cut are found with it")
    return found


def _hits(case: Case, number: int) -> set[int]:
    return {hit.memory.id for hit in case.ours.engine.search(SCOPE, case.ours.query(number)).hits}
