"""What it means that an answer of the service is that of the slow search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import pytest

from souvenir.core.types import SearchResult
from souvenir.retrieval.relevance import Found
from tests.reference.search import SlowHit

TOLERANCE = 1e-5


class Ranked(NamedTuple):
    owner_id: int
    score: float
    parts: Mapping[str, float]


def ranked_of(found: SearchResult | Found) -> list[Ranked]:
    if isinstance(found, SearchResult):
        return [Ranked(hit.memory.id, hit.parts.raw_score, hit.parts.parts) for hit in found.hits]
    return [Ranked(one.owner_id, one.score, one.parts) for one in found.ranked]


def assert_equals_reference(found: SearchResult | Found, expected: Sequence[SlowHit], top_k: int) -> None:
    """The same owners with the same scores; those whose scores differ by rounding may stand in either order."""
    slow = {hit.owner_id: hit for hit in expected}
    ranked = ranked_of(found)
    assert found.degraded == ()
    assert len({one.owner_id for one in ranked}) == len(ranked)
    for one in ranked:
        expected_parts = slow[one.owner_id].parts
        for name in one.parts.keys() | expected_parts.keys():
            assert one.parts.get(name, 0.0) == pytest.approx(expected_parts.get(name, 0.0), abs=TOLERANCE), name
    assert [one.score for one in ranked] == pytest.approx([hit.score for hit in expected[:top_k]], abs=TOLERANCE)
    assert [one.score for one in ranked] == pytest.approx([slow[one.owner_id].score for one in ranked], abs=TOLERANCE)
    for earlier, later in pairwise(ranked):
        assert earlier.score > later.score or (earlier.score == later.score and earlier.owner_id < later.owner_id)
