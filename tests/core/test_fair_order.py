"""The fair order: equal shares of what is given, no credit for idle time, and no starvation."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Semaphore

import pytest
from hypothesis import given
from hypothesis import strategies as st

from souvenir.core.concurrency import deadline
from souvenir.core.errors import DeadlineExceeded
from souvenir.core.fair_order import MAX_KEPT, FairLock, FairOrder
from tests.api.busy import PATIENCE_S, until


def served(order: FairOrder[str], waiting: list[str], cost: dict[str, float], total: float) -> dict[str, float]:
    """What each caller got, if all of them always wait."""
    got = dict.fromkeys(waiting, 0.0)
    while sum(got.values()) < total:
        chosen = order.first(waiting)
        assert chosen is not None
        order.charge(chosen, cost[chosen])
        got[chosen] += cost[chosen]
    return got


def test_callers_get_equal_shares_of_the_cost_and_not_of_the_pieces():
    order = FairOrder[str]()
    for caller in ("large", "small"):
        order.arrive(caller)
    got = served(order, ["large", "small"], {"large": 100, "small": 1}, total=10_000)
    assert abs(got["large"] - got["small"]) <= 100


@given(costs=st.lists(st.floats(0.1, 100), min_size=2, max_size=8))
def test_no_two_callers_differ_by_more_than_the_costliest_piece_of_each(costs: list[float]):
    order, names = FairOrder[str](), [str(number) for number in range(len(costs))]
    for name in names:
        order.arrive(name)
    got = served(order, names, dict(zip(names, costs, strict=True)), total=50 * max(costs))
    amounts = [got[name] for name in names]
    assert max(amounts) - min(amounts) <= 2 * max(costs) + 1e-6


def test_idle_time_earns_no_credit():
    order = FairOrder[str]()
    order.arrive("busy")
    served(order, ["busy"], {"busy": 1}, total=1000)
    order.arrive("idle")
    got = served(order, ["busy", "idle"], {"busy": 1, "idle": 1}, total=100)
    assert abs(got["busy"] - got["idle"]) <= 2


def test_a_caller_that_pauses_does_not_lose_what_it_owes():
    order = FairOrder[str]()
    for caller in ("one", "other"):
        order.arrive(caller)
    order.charge("one", 50)
    order.arrive("one")
    assert served(order, ["one", "other"], {"one": 1, "other": 1}, total=50)["other"] == 50


def test_a_cheap_piece_goes_first_and_costly_ones_are_not_starved_by_many_of_them():
    order = FairOrder[int]()
    order.arrive(0)
    got: list[int] = []
    for number in range(1, 60):
        order.arrive(number)
        chosen = order.first([0, number], lambda one: 10.0 if one == 0 else 1.0)
        assert chosen is not None
        got.append(chosen)
        order.charge(chosen, 10.0 if chosen == 0 else 1.0)
        order.forget(number)
    assert got[0] == 1
    assert got.count(0) >= 4


def test_callers_that_do_not_come_again_are_forgotten():
    order = FairOrder[int]()
    for caller in range(10 * MAX_KEPT):
        order.arrive(caller)
        order.charge(caller, 1.0)
    assert len(vars(order)["_times"]) <= MAX_KEPT + 1


def test_a_fair_lock_is_held_by_one_caller_at_a_time_and_leaves_out_none():
    lock, inside, most, got = FairLock(), 0, 0, list[str]()

    def work(caller: str) -> None:
        nonlocal inside, most
        with deadline(PATIENCE_S, caller=caller):
            for _ in range(50):
                with lock.turn():
                    inside += 1
                    most = max(most, inside)
                    got.append(caller)
                    inside -= 1

    with ThreadPoolExecutor(6) as threads:
        list(threads.map(work, ["greedy"] * 5 + ["modest"]))
    assert most == 1
    assert (got.count("greedy"), got.count("modest")) == (250, 50)


def test_the_wait_for_a_fair_lock_ends_with_the_deadline_and_leaves_it_usable():
    lock = FairLock()
    with ThreadPoolExecutor(1) as threads, lock.turn():

        def wait() -> None:
            with deadline(0.01, caller="late"), lock.turn():
                raise AssertionError("the lock was held by two")

        with pytest.raises(DeadlineExceeded):
            threads.submit(wait).result(PATIENCE_S)
    with lock.turn():
        pass


def test_a_caller_that_holds_a_fair_lock_for_long_waits_for_the_turns_of_others():
    lock, got, started = FairLock(), list[str](), Semaphore(0)

    def work(caller: str) -> None:
        with deadline(PATIENCE_S, caller=caller):
            started.release()
            with lock.turn():
                got.append(caller)

    with ThreadPoolExecutor(4) as threads:
        with deadline(PATIENCE_S, caller="long"), lock.turn():
            answers = [threads.submit(work, caller) for caller in ("long", "short")]
            for _ in answers:
                assert started.acquire(timeout=PATIENCE_S)
            until(lambda: len(vars(lock)["_waiting"]) == 2)
        for answer in answers:
            answer.result(PATIENCE_S)
    assert got == ["short", "long"]
