"""Placement and caches of the simulation of replicas, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.scaling import (
    BALANCING,
    Placement,
    bounded,
    first_choices,
    requests_until_warm,
    serve,
    simulate,
    workload,
)

LOAD = workload(2_000, 20_000, 0.6, 0.9)


def loads_of(placement: Placement) -> list[float]:
    loads: list[float] = np.bincount(placement.replicas, weights=placement.rates).tolist()
    return loads


def test_a_replica_evicts_the_least_recently_used_index():
    run = serve([0, 1, 0, 2, 0, 1], [1.0, 1.0, 1.0], memory_mb=2.0)
    assert run.cold.tolist() == [True, True, False, True, False, True]
    assert run.held_mb == 2.0


def test_an_index_larger_than_the_memory_is_held_alone():
    run = serve([0, 1, 1, 0], [1.0, 5.0], memory_mb=2.0)
    assert run.cold.tolist() == [True, True, False, True]
    assert run.held_mb == 1.0


def test_without_its_last_replica_only_the_namespaces_of_that_move():
    before, after = first_choices(2_000, 10), first_choices(2_000, 9)
    assert (before[before != 9] == after[before != 9]).all()
    assert np.bincount(before, minlength=10).min() > 150


def test_no_replica_exceeds_the_bound_and_nothing_is_lost():
    placement = bounded(LOAD, 50, bound=1.25)
    assert max(loads_of(placement)) <= 1.25 / 50 + 1e-9
    assert sum(loads_of(placement)) == pytest.approx(1.0)
    assert np.bincount(placement.namespaces, weights=placement.rates) == pytest.approx(LOAD.rates)


def test_a_namespace_below_the_bound_stays_on_its_first_replica():
    placement = bounded(LOAD, 50, bound=50.0)
    assert placement.replicas.tolist() == first_choices(2_000, 50).tolist()


@pytest.mark.parametrize("balancing", [name for name in BALANCING if name != "random"])
def test_every_request_is_placed(balancing: str):
    assert sum(loads_of(BALANCING[balancing](LOAD, 20))) == pytest.approx(1.0)


def test_the_first_window_as_warm_as_later_ones_ends_the_warming():
    cold = np.array([True] * 1_200 + [False] * 8_800)
    assert requests_until_warm(cold) == 2_000


def test_with_room_for_everything_all_requests_are_warm_wherever_they_go():
    for balancing in BALANCING:
        figures = simulate(LOAD, balancing, replicas=3, memory_mb=1e6, rate=50)
        assert figures.warm > 0.99, balancing
