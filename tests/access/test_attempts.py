"""The limit on wrong keys per address, with a manual clock."""

from __future__ import annotations

import pytest

from souvenir.access.authenticator import ADDRESSES_KEPT, WINDOW_S, FailedAttempts
from souvenir.core.errors import TooManyAttempts

LIMIT = 3


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def attempts(clock: Clock) -> FailedAttempts:
    return FailedAttempts(limit=LIMIT, clock=clock)


def fail(attempts: FailedAttempts, address: str, times: int) -> None:
    for _ in range(times):
        attempts.require_few(address)
        attempts.count(address)


def test_the_limit_is_reached_by_one_address_and_not_by_others(attempts: FailedAttempts):
    fail(attempts, "a", LIMIT)
    with pytest.raises(TooManyAttempts):
        attempts.require_few("a")
    attempts.require_few("b")


def test_the_count_restarts_a_minute_after_the_first_wrong_key(attempts: FailedAttempts, clock: Clock):
    fail(attempts, "a", 1)
    clock.now += WINDOW_S - 0.5
    fail(attempts, "a", LIMIT - 1)
    with pytest.raises(TooManyAttempts) as caught:
        attempts.require_few("a")
    assert caught.value.retry_after_s == 1
    clock.now += 0.5
    fail(attempts, "a", LIMIT)
    with pytest.raises(TooManyAttempts) as caught:
        attempts.require_few("a")
    assert caught.value.retry_after_s == WINDOW_S


def test_the_longest_quiet_addresses_are_forgotten_first(attempts: FailedAttempts):
    fail(attempts, "first", LIMIT)
    fail(attempts, "second", LIMIT - 1)
    for number in range(ADDRESSES_KEPT - 2):
        attempts.count(f"address {number}")
    attempts.count("second")
    attempts.count("one more")
    assert len(attempts) == ADDRESSES_KEPT
    attempts.require_few("first")
    with pytest.raises(TooManyAttempts):
        attempts.require_few("second")


def test_asking_remembers_nothing(attempts: FailedAttempts):
    attempts.require_few("a")
    assert len(attempts) == 0
