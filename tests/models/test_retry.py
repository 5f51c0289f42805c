"""Retries after failures: Retry-After, back-off and the circuit breaker."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from souvenir.core.errors import DeadlineExceeded, InvalidRequest, LLMRejected, LLMUnavailable
from souvenir.models.providers.circuit_breaker import CircuitBreaker
from souvenir.models.providers.endpoints import checked_url
from souvenir.models.providers.retry import asked_delay_s, backoff_s, is_transient


@pytest.mark.parametrize(
    ("headers", "delay_s"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "7"}, 7),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "tomorrow"}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0),
        ({"retry-after": "Wed, 99 Oct 2015 07:28:00 GMT"}, None),
    ],
)
def test_retry_after_may_be_in_seconds(headers, delay_s):
    assert asked_delay_s(headers) == delay_s


def test_retry_after_may_be_an_http_date():
    moment = datetime.now(UTC) + timedelta(minutes=5)
    delay_s = asked_delay_s({"retry-after": format_datetime(moment, usegmt=True)})
    assert delay_s is not None
    assert 290 < delay_s <= 300


def test_delays_grow_exponentially():
    assert all(0.375 <= backoff_s(1) <= 0.5 < 0.75 <= backoff_s(2) <= 1 < 1.5 <= backoff_s(3) <= 2 for _ in range(50))


def test_transient_errors_are_recognised_by_status():
    assert [
        status for status in (200, 301, 400, 401, 404, 408, 409, 422, 429, 500, 503, 529) if is_transient(status)
    ] == [*(408, 409, 429, 500, 503, 529)]


def outage(*, rest_s: float, after: int) -> CircuitBreaker[LLMUnavailable]:
    def open_error(failure: LLMUnavailable, left_s: float) -> LLMUnavailable:
        return LLMUnavailable(f"resting: {failure.message}", retry_after_s=round(left_s))

    return CircuitBreaker("test", LLMUnavailable, open_error, rest_s=rest_s, after=after)


def fail(watched: CircuitBreaker[LLMUnavailable], sentence: str) -> None:
    with pytest.raises(LLMUnavailable, match=sentence), watched.watch():
        raise LLMUnavailable("down")


def test_consecutive_failures_open_the_breaker():
    watched = outage(rest_s=600, after=2)
    fail(watched, "^down")
    fail(watched, "^down")
    with pytest.raises(LLMUnavailable, match="resting: down") as rejected, watched.watch():
        raise AssertionError("the provider was called")
    assert 590 < rejected.value.retry_after_s <= 600


def test_a_success_or_another_error_in_between_resets_the_count():
    watched = outage(rest_s=600, after=2)
    fail(watched, "^down")
    with watched.watch():
        pass
    fail(watched, "^down")
    with pytest.raises(LLMRejected), watched.watch():
        raise LLMRejected("no such model")
    fail(watched, "^down")
    with watched.watch():
        assert watched.failure is not None
    assert watched.failure is None


def test_the_half_open_breaker_lets_one_call_through():
    watched = outage(rest_s=0, after=1)
    fail(watched, "^down")
    with watched.watch():
        # While it is asked, others are not let through.
        fail(watched, "^resting: down")
    fail(watched, "^down")
    with watched.watch():
        pass
    with watched.watch(), watched.watch():
        pass


def test_an_abandoned_call_does_not_change_the_breaker():
    watched = outage(rest_s=0, after=2)
    fail(watched, "^down")
    for _ in range(2):
        with pytest.raises(DeadlineExceeded), watched.watch():
            raise DeadlineExceeded(1)
    fail(watched, "^down")
    for _ in range(2):
        with pytest.raises(DeadlineExceeded), watched.watch():
            raise DeadlineExceeded(1)
    assert watched.failure is not None
    with watched.watch():
        fail(watched, "^resting: down")


@pytest.mark.parametrize(
    "url",
    [
        "gpu",
        "ftp://gpu",
        "http://",
        "http://gpu:0",
        "http://a..b",
        f"http://{'a' * 70}",
        "http://1.2.3.999",
        "http://[gpu",
    ],
)
def test_an_invalid_address_is_refused_at_configuration(url):
    with pytest.raises(InvalidRequest, match="THE_SETTING is not an address"):
        checked_url(url, setting="THE_SETTING")
