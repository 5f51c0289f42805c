"""Some of the random stores that `make random-stores` compares, and that a difference would be seen."""

from __future__ import annotations

import pytest

from souvenir.index import vector
from tests.reference.random_stores import QUERIES_EACH, run


def test_random_stores_are_ranked_as_by_the_reference():
    assert run(30, first=20_000) == 30 * QUERIES_EACH


def test_a_store_that_is_ranked_otherwise_is_named(monkeypatch: pytest.MonkeyPatch):
    exact = vector.products
    monkeypatch.setattr("souvenir.index.namespace.products", lambda rows, vector: exact(rows, vector) * 0.999)
    with pytest.raises(AssertionError) as caught:
        run(4)
    assert any("in store " in note for note in caught.value.__notes__)
