"""The places of a cost class: turns by caller, reserved places, and shares of the queue."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from souvenir.core.errors import Overloaded
from souvenir.server.admission import CONTENTION_S, WAITING_PER_PLACE, Contention, Places, Turn
from souvenir.server.load_shedding import BodyMemory, CostClass

NEVER_S = 1000.0


class Class:
    """A class of cost, and the callers in the order in which they got places."""

    def __init__(self, places: int, wait_s: float = NEVER_S) -> None:
        self.places = Places(CostClass.SEARCH, places, wait_s, Contention())
        self.entered: list[str] = []
        self._memory = BodyMemory(1)

    async def enter(self, caller: str) -> Turn:
        turn = await self.places.enter(caller, self._memory, 0)
        self.entered.append(caller)
        return turn

    async def queue(self, caller: str, number: int = 1) -> list[asyncio.Task[Turn]]:
        tasks = [asyncio.create_task(self.enter(caller)) for _ in range(number)]
        await asyncio.sleep(0)
        return tasks


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 60))


async def ended(*tasks: asyncio.Task[Turn]) -> None:
    """End the turns of these requests, as they get them."""
    for task in tasks:
        (await task).end()


def test_one_caller_gets_all_places_and_all_of_the_queue_if_it_is_alone():
    async def test() -> None:
        search = Class(2)
        tasks = await search.queue("greedy", 2 + 2 * WAITING_PER_PLACE)
        figures = search.places.figures()
        assert (figures.at_work, figures.waiting) == (2, 2 * WAITING_PER_PLACE)
        with pytest.raises(Overloaded):
            await search.enter("greedy")
        await ended(*tasks)

    run(test)


def test_a_caller_that_holds_no_place_gets_a_reserved_one_while_another_has_filled_all():
    async def test() -> None:
        search = Class(2)
        greedy = await search.queue("greedy", 2 + 2 * WAITING_PER_PLACE)
        turn = await search.enter("modest")
        assert search.places.figures().at_work == 3
        turn.end()
        assert search.places.figures().at_work == 2
        await ended(*greedy)

    run(test)


def test_callers_take_turns_independent_of_their_queue_lengths():
    async def test() -> None:
        search = Class(1)
        holder = [await search.enter("holder"), await search.enter("another")]
        tasks = await search.queue("greedy", 4) + await search.queue("modest", 2)
        for turn in holder:
            turn.end()
        await ended(*tasks)
        assert "modest" in search.entered[2:4]

    run(test)


def test_a_caller_whose_requests_take_long_gets_fewer_of_them():
    async def test() -> None:
        search = Class(1)
        for caller in ("holder", "another"):
            await search.enter(caller)
        tasks = await search.queue("slow", 3) + await search.queue("quick", 3)
        search.places.leave("holder", 0.0)
        while len(search.entered) < 8:
            await asyncio.sleep(0)
            last = search.entered[-1]
            search.places.leave(last, 100.0 if last == "slow" else 1.0)
            await asyncio.sleep(0)
        assert search.entered[2:] == ["slow", "quick", "quick", "quick", "slow", "slow"]
        assert all(task.done() for task in tasks)

    run(test)


def test_while_others_wait_a_caller_may_queue_an_equal_share():
    async def test() -> None:
        search = Class(1)
        tasks = await search.queue("one", 2) + await search.queue("other", 2)
        half = WAITING_PER_PLACE // 2
        tasks += await search.queue("one", half - 1)
        with pytest.raises(Overloaded):
            await search.enter("one")
        tasks += await search.queue("other", half - 1)
        with pytest.raises(Overloaded):
            await search.enter("other")
        await ended(*[task for task in tasks if task.done()])
        for task in tasks:
            (await task).end()

    run(test)


def test_the_expected_wait_of_a_caller_counts_no_more_of_others_than_goes_before_it():
    async def test() -> None:
        search = Class(1, wait_s=10.0)
        await search.enter("greedy")
        search.places.leave("greedy", 1.0)
        first = await search.enter("greedy")
        greedy = await search.queue("greedy", 10)
        assert search.places.refusal("greedy") is not None
        reserved = await search.enter("other")
        modest = await search.queue("modest", 2)
        assert search.places.figures().waiting == 12
        first.end()
        reserved.end()
        await ended(*greedy, *modest)

    run(test)


def test_a_refusal_waits_a_moment_only_while_several_callers_use_the_service(monkeypatch: pytest.MonkeyPatch):
    now = 1_000.0
    monkeypatch.setattr("souvenir.server.admission.monotonic", lambda: now)

    async def is_paused(places: Places) -> bool:
        paused = asyncio.create_task(places.pause())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return not paused.done()

    async def test() -> None:
        nonlocal now
        search = Class(1)
        tasks = await search.queue("greedy", 3)
        now += 2 * CONTENTION_S
        tasks += await search.queue("greedy", 3)
        assert not await is_paused(search.places)
        tasks += await search.queue("modest", 1)
        assert await is_paused(search.places)
        now += 2 * CONTENTION_S
        assert await is_paused(search.places) is False
        await ended(*[task for task in tasks if task.done()])
        for task in tasks:
            (await task).end()

    run(test)


def test_a_request_that_is_cancelled_while_it_waits_takes_no_place():
    async def test() -> None:
        search = Class(1)
        first = await search.enter("one")
        cancelled, following = await search.queue("one", 2)
        cancelled.cancel()
        first.end()
        await ended(following)
        figures = search.places.figures()
        assert (figures.at_work, figures.waiting) == (0, 0)

    run(test)
