"""A service that is away is not waited for at every prompt."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from souvenir_client.hooks.breaker import FIRST_REST_S, LONGEST_REST_S, Breaker
from souvenir_client.hooks.state import locked

URL = "http://127.0.0.1:8900"


class Clock:
    def __init__(self) -> None:
        self.now_s = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def breaker(tmp_path, clock):
    return Breaker(tmp_path / "state", URL, clock)


def test_three_failures_in_a_row_open_it_for_a_minute(breaker, clock):
    assert [breaker.failed(), breaker.failed()] == [None, None]
    assert not breaker.is_open()
    assert breaker.failed() == FIRST_REST_S
    assert breaker.is_open()
    clock.now_s += FIRST_REST_S
    assert not breaker.is_open()


def test_each_failure_after_a_rest_doubles_the_rest_up_to_ten_minutes(breaker, clock):
    breaker.failed()
    breaker.failed()
    rests = []
    for _ in range(6):
        rests.append(breaker.failed())
        clock.now_s += rests[-1]
    assert rests == [60, 120, 240, 480, LONGEST_REST_S, LONGEST_REST_S]


def test_a_success_closes_it_and_resets_the_count(breaker, clock):
    for _ in range(3):
        breaker.failed()
    clock.now_s += FIRST_REST_S
    breaker.succeeded()
    assert [breaker.failed(), breaker.failed()] == [None, None]
    assert breaker.failed() == FIRST_REST_S


def test_failures_of_hooks_that_began_before_it_opened_do_not_prolong_the_rest(breaker, clock):
    for _ in range(3):
        breaker.failed()
    assert breaker.failed() is None
    clock.now_s += FIRST_REST_S
    assert not breaker.is_open()


def test_each_service_has_a_separate_breaker(tmp_path, breaker, clock):
    for _ in range(3):
        breaker.failed()
    assert not Breaker(tmp_path / "state", "http://other:8900", clock).is_open()


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"[]", b'{"failures": "3", "open_until": 1}', b"\xff", b'{"failures": -1}']
)
def test_damaged_state_is_no_state(tmp_path, breaker, damage):
    breaker.failed()
    [file] = (tmp_path / "state").glob("breaker-*.json")
    file.write_bytes(damage)
    assert not breaker.is_open()
    assert [breaker.failed(), breaker.failed(), breaker.failed()] == [None, None, FIRST_REST_S]


def test_a_clock_that_was_set_back_holds_nothing_open(breaker, clock):
    for _ in range(3):
        breaker.failed()
    clock.now_s -= 86_400
    assert not breaker.is_open()


def test_hooks_at_once_lose_no_failure(breaker):
    with ThreadPoolExecutor(8) as pool:
        rests = list(pool.map(lambda _: breaker.failed(wait_s=60), range(24)))
    assert [rest for rest in rests if rest is not None] == [FIRST_REST_S]


def test_a_lock_that_another_hook_keeps_is_not_waited_for_longer_than_said(tmp_path, breaker):
    breaker.failed()
    [file] = (tmp_path / "state").glob("breaker-*.json")
    with locked(file, wait_s=0):
        # Either comes back while the lock is still kept.
        assert breaker.failed(wait_s=0.05) is None
        breaker.succeeded(wait_s=0)
    assert [breaker.failed(), breaker.failed()] == [None, FIRST_REST_S]
