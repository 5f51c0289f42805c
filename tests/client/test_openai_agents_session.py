"""The session of the OpenAI Agents SDK against the real service, next to the SDK's own `SQLiteSession`."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner, Session, SQLiteSession, function_tool
from agents.memory import SessionSettings

from souvenir_client import AsyncSouvenir, Souvenir
from souvenir_client.adapters.openai_agents import SouvenirSession
from souvenir_client.errors import Forbidden, InvalidRequest
from tests.client.models import async_openai_client
from tests.client.running import RunningService
from tests.vendors.llm import LLMVendor, call, says

ITEMS: list[Any] = [
    {"role": "user", "content": "My name is Alice"},
    {"role": "user", "content": [{"type": "input_text", "text": "Look"}, {"type": "input_image", "image_url": "x"}]},
    {"role": "developer", "content": "Answer in French"},
    {"role": "assistant", "content": ""},
    {"role": "assistant", "content": "\u200b"},
    {"role": "user", "content": "\x07"},
    {
        "id": "msg_1",
        "type": "message",
        "status": "completed",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "Bonjour Alice", "annotations": [], "logprobs": None}],
    },
    {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": '{"city": "Nice"}', "id": "fc_1"},
    {"type": "function_call_output", "call_id": "c1", "output": "21.5 °C"},
    {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm"}], "encrypted_content": "x"},
    {"type": "item_reference", "id": "msg_1", "n": 10**20, "f": 1.5, "none": None, "z": 1, "a": 2},
]


@pytest.fixture(autouse=True)
def _no_tracing(monkeypatch: pytest.MonkeyPatch) -> None:
    # The SDK sends traces to OpenAI unless it is told not to.
    monkeypatch.setenv("OPENAI_AGENTS_DISABLE_TRACING", "1")


@pytest.fixture
def vendor() -> Iterator[LLMVendor]:
    vendor = LLMVendor()
    vendor.start()
    yield vendor
    vendor.stop()


@asynccontextmanager
async def session_of(service: RunningService, name: str, **options: Any) -> AsyncIterator[SouvenirSession]:
    async with AsyncSouvenir(service.url) as souvenir:
        yield SouvenirSession(name, souvenir, agent="agent", **options)


def with_session(service: RunningService, name: str, use: Callable[[SouvenirSession], Awaitable[Any]], **options: Any):
    async def run() -> Any:
        async with session_of(service, name, **options) as session:
            return await use(session)

    return asyncio.run(run())


def test_a_session_answers_like_the_sdks_own(service: RunningService):
    async def use(ours: SouvenirSession) -> None:
        chance, reference = random.Random(3), SQLiteSession("same")
        for _ in range(60):
            kind = chance.choice(["add", "add", "get", "get", "pop", "clear" if chance.random() < 0.2 else "pop"])
            if kind == "add":
                items = chance.choices(ITEMS, k=chance.randint(0, 5))
                await reference.add_items(items)
                await ours.add_items(items)
            elif kind == "pop":
                assert await ours.pop_item() == await reference.pop_item()
            elif kind == "clear":
                await reference.clear_session()
                await ours.clear_session()
            limit = chance.choice([None, 0, 1, 2, 5, 100, -1])
            assert await ours.get_items(limit) == await reference.get_items(limit)
        reference.close()

    with_session(service, "same", use)


def test_each_of_several_callers_pops_another_item(service: RunningService):
    async def use(session: SouvenirSession) -> list[Any]:
        await session.add_items([{"role": "user", "content": str(n)} for n in range(5)])
        return list(await asyncio.gather(*(session.pop_item() for _ in range(6))))

    popped = with_session(service, "popped", use)
    assert sorted(item["content"] if item else "none" for item in popped) == ["0", "1", "2", "3", "4", "none"]


def test_an_item_keeps_the_order_of_its_fields(service: RunningService):
    async def use(session: SouvenirSession) -> list[Any]:
        await session.add_items(ITEMS)
        return await session.get_items()

    assert list(map(repr, with_session(service, "order", use))) == list(map(repr, ITEMS))


def test_the_limit_of_the_settings_applies_unless_another_is_given(service: RunningService):
    async def use(session: SouvenirSession) -> list[int]:
        await session.add_items(ITEMS)
        return [len(await session.get_items()), len(await session.get_items(5))]

    assert with_session(service, "settings", use, session_settings=SessionSettings(limit=2)) == [2, 5]


def test_more_items_than_one_request_takes(service: RunningService):
    async def use(session: SouvenirSession) -> None:
        items: list[Any] = [{"role": "user", "content": f"number {n}"} for n in range(2010)]
        await session.add_items(items)
        assert await session.get_items() == items
        assert await session.get_items(1005) == items[-1005:]

    with_session(service, "many", use)


def test_it_is_a_session_of_the_sdk(service: RunningService):
    async def use(session: SouvenirSession) -> bool:
        return isinstance(session, Session)

    assert with_session(service, "protocol", use)


def test_items_are_messages_of_the_agent(service: RunningService):
    with_session(service, "found", lambda session: session.add_items(ITEMS), user="alice")
    with Souvenir(service.url) as souvenir:
        messages = souvenir.sessions.messages("agent", "found")
        assert [(str(one.role), one.content) for one in messages] == [
            ("user", "My name is Alice"),
            ("user", "Look\n"),
            ("system", "Answer in French"),
            ("assistant", "(message)"),
            ("assistant", "(message)"),
            ("user", "(message)"),
            ("assistant", "Bonjour Alice"),
            ("assistant", 'weather({"city": "Nice"})'),
            ("assistant", "21.5 °C"),
            ("assistant", "Hm"),
            ("assistant", "(item_reference)"),
        ]
        assert {one.user for one in messages} == {"alice"}
        assert "My name is Alice" in souvenir.context.build("agent", query="What is my name?").text


def test_messages_of_other_programs_are_items_too(service: RunningService):
    with Souvenir(service.url) as souvenir:
        souvenir.messages.add(agent_name="agent", session_id="other", role="user", content="Hello")
    items = with_session(service, "other", lambda session: session.get_items())
    assert items == [{"role": "user", "content": "Hello"}]


def test_an_item_that_is_too_large_is_refused_and_nothing_is_stored(service: RunningService):
    async def use(session: SouvenirSession) -> list[Any]:
        with pytest.raises(InvalidRequest, match="65536 bytes"):
            await session.add_items([ITEMS[0], {"role": "user", "content": "x" * 70_000}])
        return await session.get_items()

    assert with_session(service, "large", use) == []


def test_a_key_that_may_only_write_cannot_erase(own_service: RunningService):
    with Souvenir(own_service.url) as souvenir:
        admin = souvenir.keys.create(name="admin", role="admin").key
        with Souvenir(own_service.url, api_key=admin) as admins:
            key = admins.keys.create(name="writer", role="read-write", namespace="agent").key

    async def use() -> None:
        async with AsyncSouvenir(own_service.url, api_key=key) as souvenir:
            session = SouvenirSession("s", souvenir, agent="agent")
            await session.add_items(ITEMS[:2])
            for erase in (session.pop_item, session.clear_session):
                with pytest.raises(Forbidden):
                    await erase()
            assert await session.get_items() == ITEMS[:2]

    asyncio.run(use())


def test_a_run_continues_the_conversation(service: RunningService, vendor: LLMVendor):
    @function_tool
    def weather(city: str) -> str:
        """Return the weather."""
        return f"Rain in {city}"

    vendor.replies += [says("", calls=[call("weather", "call_1", city="Nice")]), "It rains", "You asked about Nice"]

    async def use(session: SouvenirSession) -> list[str]:
        async with async_openai_client(vendor) as client:
            model = OpenAIChatCompletionsModel("scripted-1", client)
            agent = Agent(name="helper", tools=[weather], model=model)
            config = RunConfig(tracing_disabled=True)
            asked = ["Weather in Nice?", "What did I ask?"]
            runs = [await Runner.run(agent, question, session=session, run_config=config) for question in asked]
            return [str(run.final_output) for run in runs]

    assert with_session(service, "run", use) == ["It rains", "You asked about Nice"]
    shown = vendor.requests[-1].body["messages"]
    assert [one["role"] for one in shown] == ["user", "assistant", "tool", "assistant", "user"]
    assert shown[2]["content"] == "Rain in Nice"
