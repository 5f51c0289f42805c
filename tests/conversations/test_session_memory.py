"""Tier 1 alone: a circular buffer that equals a plain list of the newest messages after any operations."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from souvenir.conversations.message_buffer import BufferedMessage, MessageBuffer, SessionMemory
from souvenir.core.errors import InvalidRequest
from souvenir.core.types import MessageRole
from tests.conversations.running import run


def filled(*contents: str, max_messages: int = 50) -> SessionMemory:
    memory = SessionMemory(max_messages)
    for number, content in enumerate(contents):
        run(memory.add_message("assistant" if number % 2 else "user", content))
    return memory


def contents(messages: list[dict[str, Any]]) -> list[str]:
    return [message["content"] for message in messages]


def test_a_new_memory_is_empty_and_holds_fifty_messages():
    memory = SessionMemory()
    assert run(memory.get_messages()) == []
    assert run(memory.get_context_window()) == []
    full = filled(*map(str, range(51)))
    assert contents(run(full.get_messages())) == [str(number) for number in range(1, 51)]


def test_messages_are_kept_with_their_times():
    before = time.time()
    first, second = run(filled("Hello", "Hi there").get_messages())
    assert (first["role"], first["content"], second["role"]) == ("user", "Hello", "assistant")
    assert first.keys() == {"role", "content", "timestamp"}
    assert before <= first["timestamp"] <= second["timestamp"] <= time.time()


@pytest.mark.parametrize(("limit", "found"), [(None, "abc"), (2, "bc"), (3, "abc"), (9, "abc"), (0, ""), (-1, "")])
def test_a_limit_returns_the_newest_messages_oldest_first(limit: int | None, found: str):
    assert contents(run(filled(*"abc").get_messages(limit))) == list(found)


def test_the_oldest_messages_beyond_the_maximum_are_evicted():
    assert contents(run(filled(*"abcd", max_messages=2).get_messages())) == ["c", "d"]


def test_a_cleared_memory_is_empty_and_takes_messages_again():
    memory = filled("a", "b")
    run(memory.clear())
    assert run(memory.get_messages()) == []
    run(memory.add_message("user", "c"))
    assert contents(run(memory.get_messages())) == ["c"]


@pytest.mark.parametrize(
    ("token_limit", "found"),
    [(4096, ["a" * 8, "b" * 40, "c" * 4]), (12, ["b" * 40, "c" * 4]), (11, ["b" * 40, "c" * 4])],
)
def test_a_context_window_holds_whole_messages_of_four_characters_a_token(token_limit: int, found: list[str]):
    assert contents(run(filled("a" * 8, "b" * 40, "c" * 4).get_context_window(token_limit))) == found


def test_a_context_window_has_no_gap_where_a_long_message_does_not_fit():
    memory = filled("short", "long" * 100, "new")
    assert contents(run(memory.get_context_window(10))) == ["new"]
    assert run(memory.get_context_window(0)) == []


def test_concurrent_tasks_lose_no_message():
    async def talk() -> list[dict[str, Any]]:
        memory = SessionMemory(max_messages=1000)
        await asyncio.gather(*(memory.add_message("user", str(number)) for number in range(500)))
        return await memory.get_messages()

    assert sorted(contents(run(talk())), key=int) == [str(number) for number in range(500)]


def test_an_unknown_role_and_an_empty_buffer_are_refused():
    with pytest.raises(InvalidRequest, match="user, assistant, system"):
        run(SessionMemory().add_message("robot", "hello"))
    with pytest.raises(InvalidRequest, match="at least one"):
        SessionMemory(max_messages=0)


@given(
    max_messages=st.integers(1, 6),
    texts=st.lists(st.one_of(st.none(), st.text(max_size=12)), max_size=20),
    limit=st.one_of(st.none(), st.integers(-2, 8)),
    token_limit=st.integers(0, 12),
)
def test_the_buffer_equals_the_end_of_a_plain_list(
    max_messages: int, texts: list[str | None], limit: int | None, token_limit: int
):
    """None clears."""
    memory, plain = SessionMemory(max_messages), list[str]()
    for text in texts:
        if text is None:
            run(memory.clear())
            plain = []
        else:
            run(memory.add_message("user", text))
            plain = [*plain, text][-max_messages:]
    newest = plain if limit is None else [text for number, text in enumerate(plain) if number >= len(plain) - limit]
    assert contents(run(memory.get_messages(limit))) == newest
    ends = [plain[first:] for first in range(len(plain) + 1)]
    assert contents(run(memory.get_context_window(token_limit))) == next(
        end for end in ends if sum(map(len, end)) <= 4 * token_limit
    )


@given(st.permutations(range(9)), st.integers(1, 10))
def test_messages_are_ordered_by_position_in_any_insertion_order(order: list[int], max_messages: int):
    window = MessageBuffer(max_messages)
    for position in [*order, order[0]]:
        window.add([BufferedMessage(position, MessageRole.USER, str(position), 0.0)])
    assert [message.position for message in window.newest()] == list(range(9))[-max_messages:]
