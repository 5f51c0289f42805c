"""Parts of an answer that are awaited until a deadline."""

from __future__ import annotations

from threading import Event

import pytest

from souvenir.conversations.concurrent_parts import TimedParts, result_of
from souvenir.core.concurrency import deadline, time_left
from souvenir.core.errors import DeadlineExceeded, NotFound

WAIT_S = 30.0


def test_a_part_returns_its_result_or_its_failure():
    def failing() -> int:
        raise NotFound("There is none")

    with deadline(WAIT_S) as until:
        part, broken = TimedParts().start("part", lambda: 7), TimedParts().start("broken", failing)
        assert result_of(part, until) == 7
        with pytest.raises(NotFound):
            result_of(broken, until)


def test_a_part_knows_the_deadline():
    with deadline(WAIT_S) as until:
        assert 0 < result_of(TimedParts().start("part", lambda: time_left(2 * WAIT_S)), until) <= WAIT_S


def test_a_timely_result_is_available_after_the_deadline():
    with deadline(WAIT_S):
        part = TimedParts().start("part", lambda: 7)
        assert part.result(WAIT_S) == 7
    with deadline(0.0) as over:
        assert result_of(part, over) == 7


def test_late_parts_are_bounded():
    in_time, go_on = TimedParts(max_parts=2), Event()
    with deadline(0.05) as until:
        stuck = [in_time.start("stuck", go_on.wait) for _ in range(2)]
        for part in (*stuck, in_time.start("one too many", lambda: True), in_time.start("too late", lambda: True)):
            with pytest.raises(DeadlineExceeded):
                result_of(part, until)
    go_on.set()
    with deadline(WAIT_S) as until:
        assert result_of(in_time.start("next", lambda: 7), until) == 7
