"""Blocks of `learning()`: nested, concurrent in tasks and threads, as decorators, with sessions; and their ends."""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Thread
from typing import Any

import openai
import pytest

from souvenir_client import learning, session
from tests.client import models
from tests.client.models import MODEL, Memory, ask, ask_async, assistant, shown, user
from tests.vendors.llm import LLMVendor, says

TASKS, THREADS, AGENTS, CALLS = 50, 10, 10, 2
CALLS_OF_A_TASK = 1


@pytest.fixture(scope="module")
def vendor() -> Iterator[LLMVendor]:
    """A model that repeats what it was asked."""
    vendor = LLMVendor()
    vendor.script(lambda request: f"You said: {request.turns[-1]['content']}")
    vendor.start()
    yield vendor
    vendor.stop()


@pytest.fixture(scope="module")
def client(vendor: LLMVendor) -> Iterator[openai.OpenAI]:
    with models.openai_client(vendor) as client:
        yield client


@pytest.fixture(scope="module")
def memory(service: Any) -> Iterator[Memory]:
    memory = Memory(service)
    yield memory
    memory.close()


@pytest.fixture
def agent(request: pytest.FixtureRequest) -> str:
    return str(request.node.name)[:150]


def questions(memory: Memory, agent: str, session_id: str | None = None) -> list[str]:
    return [content for role, content in memory.said(agent, session_id) if role == "user"]


def secret_of(agent: str) -> str:
    return f"The password of {agent.replace(' ', '')} is here."


def shown_to(vendor: LLMVendor, question: str) -> str:
    """What the model was shown that was asked this."""
    (body,) = (request.body for request in vendor.requests if request.turns[-1]["content"] == question)
    return shown(body)


def assert_nothing_is_mixed(vendor: LLMVendor, memory: Memory, agents: list[str], asked: dict[str, list[str]]) -> None:
    """Each agent has what was asked of it and its answers, and was shown its own past and nobody else's."""
    for agent in agents:
        expected = sorted([*asked[agent], *(f"You said: {question}" for question in asked[agent])])
        assert sorted(content for _, content in memory.said(agent)) == expected
        for question in asked[agent]:
            seen = shown_to(vendor, question)
            assert [other for other in agents if secret_of(other) in seen] == [agent]


def test_fifty_concurrent_tasks_with_ten_agents_are_isolated(service, vendor, memory):
    agents = [f"task agent {number}" for number in range(AGENTS)]
    for agent in agents:
        memory.client.blocks.create(agent_name=agent, label="secret", value=secret_of(agent))
    asked: dict[str, list[str]] = {agent: [] for agent in agents}

    async def converse(client: openai.AsyncOpenAI, number: int, start: asyncio.Event) -> None:
        agent = agents[number % AGENTS]
        await start.wait()
        async with learning(agent, service.url, timeout_s=20.0):
            for turn in range(CALLS_OF_A_TASK):
                question = f"Task {number} asks for the password, {turn}."
                asked[agent].append(question)
                answer = await ask_async(client, question)
                assert answer.choices[0].message.content == f"You said: {question}"

    async def run() -> None:
        start = asyncio.Event()
        async with models.async_openai_client(vendor) as client:
            tasks = [asyncio.create_task(converse(client, number, start)) for number in range(TASKS)]
            start.set()
            await asyncio.gather(*tasks)

    asyncio.run(run())
    assert not hasattr(openai.AsyncOpenAI.request, "__wrapped__")
    assert_nothing_is_mixed(vendor, memory, agents, asked)


def test_ten_concurrent_threads_with_ten_agents_are_isolated(service, vendor, client, memory):
    agents = [f"thread agent {number}" for number in range(THREADS)]
    for agent in agents:
        memory.client.blocks.create(agent_name=agent, label="secret", value=secret_of(agent))
    asked = {agent: [f"{agent} asks for the password, {turn}." for turn in range(CALLS)] for agent in agents}
    start = Barrier(THREADS)

    def converse(agent: str) -> None:
        start.wait()
        with learning(agent, service.url, timeout_s=20.0):
            for question in asked[agent]:
                ask(client, question)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(converse, agents))
    assert_nothing_is_mixed(vendor, memory, agents, asked)


def test_the_inner_block_wins_and_then_the_outer_one_again(service, client, memory, agent):
    inner = f"{agent} inner"
    with learning(agent, service.url) as outer_block:
        ask(client, "Outer, before.")
        with learning(inner, service.url) as inner_block:
            ask(client, "Inner.")
        assert questions(memory, inner) == ["Inner."]
        ask(client, "Outer, after.")
    ask(client, "Outside.")
    assert questions(memory, agent) == ["Outer, before.", "Outer, after."]
    assert outer_block.session_id != inner_block.session_id


def test_an_inner_block_of_the_same_agent_inherits_session_and_user(service, client, memory, agent):
    with learning(agent, service.url, user="alice") as outer:
        with learning(f"{agent} between", service.url) as between, learning(agent, service.url) as inner:
            ask(client, "Still the same.")
        with learning(agent, service.url, session_id="own", user="bob") as own:
            ask(client, "My own.")
    assert inner.session_id == outer.session_id
    assert between.session_id != outer.session_id
    assert between.user is None
    assert (own.session_id, own.user) == ("own", "bob")
    assert {session.session_id: session.user for session in memory.sessions(agent)} == {
        outer.session_id: "alice",
        "own": "bob",
    }


def test_sessions_can_be_set_before_and_switched_inside_a_block(service, client, memory, agent):
    with learning(agent, service.url) as block:
        ask(client, "One.")
        with session("chat-42"):
            ask(client, "Two.")
            with session("chat-43"):
                ask(client, "Three.")
            ask(client, "Four.")
        ask(client, "Five.")
    with session("chat-42"), learning(agent, service.url):
        ask(client, "Six.")
        with learning(f"{agent} too", service.url):
            ask(client, "Seven.")
    with session("chat-42"), learning(agent, service.url, session_id="named"):
        ask(client, "Eight.")
    assert questions(memory, agent, block.session_id) == ["One.", "Five."]
    assert questions(memory, agent, "chat-42") == ["Two.", "Four.", "Six."]
    assert questions(memory, agent, "chat-43") == ["Three."]
    assert questions(memory, f"{agent} too", "chat-42") == ["Seven."]
    assert questions(memory, agent, "named") == ["Eight."]
    with pytest.raises(ValueError, match="session_id"), session("a/b"):
        pass


def test_a_user_recalls_only_their_own_messages(service, vendor, client, agent):
    for name, colour in (("alice", "teal"), ("bob", "mauve")):
        with learning(agent, service.url, user=name):
            ask(client, f"My favourite colour is {colour}.")
    with learning(agent, service.url, user="bob"):
        ask(client, "Which colour is my favourite, for Bob?")
    seen = shown_to(vendor, "Which colour is my favourite, for Bob?")
    assert "mauve" in seen
    assert "teal" not in seen


def test_each_call_of_a_decorated_function_is_a_separate_block(service, client, memory, agent):
    @learning(agent, service.url)
    def count_down(number: int, *, word: str) -> str:
        """Counts."""
        answer = str(ask(client, f"{word} {number}").choices[0].message.content)
        return answer if number == 0 else count_down(number - 1, word=word)

    assert count_down.__name__ == "count_down"
    assert count_down(2, word="now") == "You said: now 0"
    count_down(0, word="again")
    ask(client, "Outside.")
    first, second = memory.sessions(agent)
    assert questions(memory, agent, first.session_id) == ["now 2", "now 1", "now 0"]
    assert questions(memory, agent, second.session_id) == ["again 0"]


def test_decorated_coroutine_functions_may_run_concurrently(service, vendor, memory, agent):
    @learning(agent, service.url)
    async def say(client: openai.AsyncOpenAI, text: str) -> Any:
        return await ask_async(client, text)

    async def run() -> None:
        async with models.async_openai_client(vendor) as client:
            with session("together"):
                await asyncio.gather(*(say(client, f"Number {number}.") for number in range(5)))

    assert asyncio.iscoroutinefunction(say)
    asyncio.run(run())
    assert sorted(questions(memory, agent, "together")) == [f"Number {number}." for number in range(5)]


def test_generators_are_not_decorated():
    def numbers() -> Iterator[int]:
        yield 1

    async def async_numbers() -> Any:
        yield 1

    for generator in (numbers, async_numbers):
        with pytest.raises(TypeError, match="decorate the function that iterates over"):
            learning("agent")(generator)


def test_a_block_around_a_generator_loop_covers_calls_in_the_generator(service, client, memory, agent):
    def asking(name: str) -> Iterator[str]:
        for number in range(2):
            ask(client, f"{name} {number}.")
            yield name

    @learning(f"{agent} decorated", service.url)
    def iterate() -> list[str]:
        return list(asking("Decorated"))

    with learning(agent, service.url):
        for _ in zip(asking("One"), asking("Two"), strict=True):
            ask(client, "Between.")
    iterate()
    assert questions(memory, agent) == ["One 0.", "Two 0.", "Between.", "One 1.", "Two 1.", "Between."]
    assert questions(memory, f"{agent} decorated") == ["Decorated 0.", "Decorated 1."]


def test_an_ordinary_with_works_in_asynchronous_code(service, vendor, memory, agent):
    async def run() -> None:
        async with models.async_openai_client(vendor) as client:
            with learning(agent, service.url):
                await ask_async(client, "Hello.")

    asyncio.run(run())
    assert memory.said(agent) == [("user", "Hello."), ("assistant", "You said: Hello.")]


def test_a_task_that_outlives_its_block_uses_the_outer_one_and_then_none(service, vendor, memory, agent):
    inner = f"{agent} inner"

    async def run() -> None:
        async with models.async_openai_client(vendor) as client:

            async def outlive(ended: asyncio.Event, text: str) -> None:
                await ended.wait()
                await ask_async(client, text)

            ended, inner_ended = asyncio.Event(), asyncio.Event()
            async with learning(agent, service.url):
                task = asyncio.create_task(outlive(ended, "Too late."))
                async with learning(inner, service.url):
                    inner_tasks = [asyncio.create_task(outlive(inner_ended, "In the outer block."))]
                    with session("chosen"):
                        inner_tasks.append(asyncio.create_task(outlive(inner_ended, "In the chosen session.")))
                inner_ended.set()
                await asyncio.gather(*inner_tasks)
            ended.set()
            await task

    asyncio.run(run())
    assert sorted(questions(memory, agent)) == ["In the chosen session.", "In the outer block."]
    assert questions(memory, agent, "chosen") == ["In the chosen session."]
    assert memory.said(inner) == []


def test_leaving_an_inner_block_in_another_task_restores_the_outer_one(service, vendor, memory, agent):
    inner = f"{agent} inner"

    async def run() -> None:
        async with models.async_openai_client(vendor) as client, learning(agent, service.url):
            block = learning(inner, service.url)
            await block.__aenter__()
            await ask_async(client, "Inside.")
            await asyncio.create_task(block.__aexit__(None, None, None))
            await ask_async(client, "After it.")
            async with learning(agent, service.url):
                await ask_async(client, "In another.")

    asyncio.run(run())
    assert questions(memory, agent) == ["After it.", "In another."]
    assert questions(memory, inner) == ["Inside."]
    assert len(memory.sessions(agent)) == 1


def test_a_task_outside_every_block_ends_the_oldest_block_of_the_object(service, vendor, memory, agent):
    shared = learning(agent, service.url)

    async def run() -> None:
        async with models.async_openai_client(vendor) as client:

            async def first() -> None:
                await shared.__aenter__()
                await ask_async(client, "First.")

            async def second(entered: asyncio.Event, left: asyncio.Event) -> None:
                async with shared:
                    entered.set()
                    await left.wait()
                    await ask_async(client, "Second.")

            await asyncio.create_task(first())
            entered, left = asyncio.Event(), asyncio.Event()
            task = asyncio.create_task(second(entered, left))
            await entered.wait()
            await shared.__aexit__(None, None, None)
            left.set()
            await task

    asyncio.run(run())
    assert questions(memory, agent) == ["First.", "Second."]
    assert not hasattr(openai.AsyncOpenAI.request, "__wrapped__")


def test_a_thread_is_in_the_block_only_if_it_runs_in_its_context(service, client, memory, agent):
    with learning(agent, service.url):
        for run in (ask, contextvars.copy_context().run):
            thread = Thread(target=run, args=(client, "Bare.") if run is ask else (ask, client, "With context."))
            thread.start()
            thread.join()
    assert questions(memory, agent) == ["With context."]


def test_a_block_may_be_left_in_another_context_than_it_was_entered_in(service, client, memory, agent):
    block = learning(agent, service.url)
    contextvars.copy_context().run(block.__enter__)
    ask(client, "Bare.")
    block.__exit__(None, None, None)
    assert not hasattr(openai.OpenAI.request, "__wrapped__")
    assert memory.said(agent) == []


def test_a_broken_stream_is_stored_in_part_and_its_retry_stores_the_rest(service, vendor, client, memory, agent):
    long_answer = "It was a dark and stormy night. " * 20
    vendor.replies += [says(long_answer, hangs_up="midst"), says(long_answer, stream_error="Overloaded"), long_answer]
    with learning(agent, service.url) as block:
        for _ in range(2):
            with pytest.raises(openai.APIError):
                list(ask(client, "Tell me a story.", stream=True))
        list(ask(client, "Tell me a story.", stream=True))
        list(ask(client, "Tell me a story.", stream=True))
    question, *parts, whole, again, _ = memory.messages(agent, block.session_id)
    assert (question.role, question.content) == ("user", "Tell me a story.")
    assert len(parts) == 2
    assert all(long_answer.startswith(part.content) and part.metadata["incomplete"] for part in parts)
    assert whole.content == long_answer
    assert whole.metadata == {"model": MODEL}
    assert (again.role, again.content) == ("user", "Tell me a story.")


def test_a_stream_that_outlives_its_block_is_stored_when_it_ends(service, client, memory, agent):
    with learning(agent, service.url) as block:
        stream = ask(client, "Hello.", stream=True)
        next(iter(stream))
    assert memory.said(agent, block.session_id) == [("user", "Hello.")]
    list(stream)
    with learning(agent, service.url, session_id=block.session_id):
        ask(client, "Bye.")
    assert memory.said(agent, block.session_id) == [
        ("user", "Hello."),
        ("assistant", "You said: Hello."),
        ("user", "Bye."),
        ("assistant", "You said: Bye."),
    ]


def test_a_conversation_continues_after_streamed_answers(service, client, memory, agent):
    history: list[Any] = []
    with learning(agent, service.url) as block:
        for said in ("Yes.", "Yes.", "Yes."):
            history.append(user(said))
            chunks = ask(client, *history, stream=True)
            pieces = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
            history.append(assistant("".join(pieces)))
    assert memory.said(agent, block.session_id) == [(turn["role"], turn["content"]) for turn in history]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_a_forked_process_opens_new_connections(service, vendor, memory, agent):
    with learning(agent, service.url, session_id="one"):
        with models.openai_client(vendor) as client:
            ask(client, "From the parent.")
        child = os.fork()
        if not child:
            status = 1
            try:
                with learning(agent, service.url), models.openai_client(vendor) as client:
                    ask(client, "From the child.")
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        with models.openai_client(vendor) as client:
            ask(client, "From the parent again.")
    assert questions(memory, agent, "one") == ["From the parent.", "From the child.", "From the parent again."]
