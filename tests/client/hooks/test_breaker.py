"""The circuit breaker: prompts do not wait for an unavailable service."""

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


def test_three_consecutive_failures_open_the_breaker_for_a_minute(breaker, clock):
    assert [breaker.failed(), breaker.failed()] == [None, None]
    assert not breaker.is_open()
    assert breaker.failed() == FIRST_REST_S
    assert breaker.is_open()
    clock.now_s += FIRST_REST_S
    assert not breaker.is_open()


def test_each_failure_after_the_pause_doubles_it_up_to_ten_minutes(breaker, clock):
    breaker.failed()
    breaker.failed()
    rests = []
    for _ in range(6):
        rests.append(breaker.failed())
        clock.now_s += rests[-1]
    assert rests == [60, 120, 240, 480, LONGEST_REST_S, LONGEST_REST_S]


def test_a_success_closes_the_breaker_and_resets_the_count(breaker, clock):
    for _ in range(3):
        breaker.failed()
    clock.now_s += FIRST_REST_S
    breaker.succeeded()
    assert [breaker.failed(), breaker.failed()] == [None, None]
    assert breaker.failed() == FIRST_REST_S


def test_failures_of_hooks_started_before_it_opened_do_not_extend_the_pause(breaker, clock):
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
def test_damaged_state_is_ignored(tmp_path, breaker, damage):
    breaker.failed()
    [file] = (tmp_path / "state").glob("breaker-*.json")
    file.write_bytes(damage)
    assert not breaker.is_open()
    assert [breaker.failed(), breaker.failed(), breaker.failed()] == [None, None, FIRST_REST_S]


def test_a_clock_set_back_does_not_keep_the_breaker_open(breaker, clock):
    for _ in range(3):
        breaker.failed()
    clock.now_s -= 86_400
    assert not breaker.is_open()


def test_concurrent_hooks_count_every_failure(breaker):
    with ThreadPoolExecutor(8) as pool:
        rests = list(pool.map(lambda _: breaker.failed(wait_s=60), range(24)))
    assert [rest for rest in rests if rest is not None] == [FIRST_REST_S]


def test_a_held_lock_is_awaited_only_for_the_given_time(tmp_path, breaker):
    breaker.failed()
    [file] = (tmp_path / "state").glob("breaker-*.json")
    with locked(file, wait_s=0):
        # Either comes back while the lock is still kept.
        assert breaker.failed(wait_s=0.05) is None
        breaker.succeeded(wait_s=0)
    assert [breaker.failed(), breaker.failed()] == [None, FIRST_REST_S]
