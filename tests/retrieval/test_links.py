"""The support by links, by its formula: bounded by the weight and by what the hits have to pass on."""

from __future__ import annotations

from random import Random

import pytest

from souvenir.retrieval.links import supports
from souvenir.retrieval.ranking import Ranked


def hits(*probabilities: float) -> list[Ranked]:
    return [
        Ranked(
            at=owner,
            owner_id=owner,
            score=0.0,
            rrf_score=0.0,
            parts={},
            lexical_rank=None,
            vector_rank=None,
            probability=probability,
        )
        for owner, probability in enumerate(probabilities)
    ]


def test_a_memory_with_several_links_gets_at_most_the_share_of_the_best_hit():
    found = supports(hits(0.8, 0.6, 0.1), [(0, 9), (1, 9), (2, 9), (2, 8)], 0.5)
    assert found[9].share == pytest.approx(0.4)
    assert found[9].via == (0, 1, 2)
    assert found[8].share == pytest.approx(0.5 * 0.1 / 2)


def test_all_links_together_pass_at_most_the_share_of_the_hits():
    chance = Random(1)
    for _ in range(200):
        probabilities = sorted((chance.random() for _ in range(chance.randint(1, 6))), reverse=True)
        weight = chance.random()
        ranked = hits(*probabilities)
        pairs = list({(chance.randrange(len(ranked)), chance.randint(0, 20)) for _ in range(chance.randint(1, 30))})
        found = supports(ranked, pairs, weight)
        assert found.keys() == {other for _, other in pairs}
        assert sum(one.share for one in found.values()) <= weight * sum(probabilities) + 1e-4
        for id_, one in found.items():
            linked = [hit for hit, other in pairs if other == id_]
            shared = sum(probabilities[hit] / sum(pair[0] == hit for pair in pairs) for hit in linked)
            assert one.share == pytest.approx(weight * min(shared, max(probabilities[hit] for hit in linked)), abs=1e-6)
            assert one.via == tuple(sorted(linked))
