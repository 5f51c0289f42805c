"""Chat history and retriever of LangChain against the real service, next to LangChain's own history."""

from __future__ import annotations

import asyncio
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.chat_history import BaseChatMessageHistory, InMemoryChatMessageHistory
from langchain_core.documents import Document
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda

from souvenir_client import AsyncSouvenir, Souvenir
from souvenir_client.adapters.langchain import (
    AsyncSouvenirChatMessageHistory,
    AsyncSouvenirRetriever,
    SouvenirChatMessageHistory,
    SouvenirRetriever,
)
from souvenir_client.errors import InvalidRequest
from tests.client.running import RunningService

MESSAGES: list[BaseMessage] = [
    HumanMessage("My name is Alice", id="1", name="alice", additional_kwargs={"n": 10**20}),
    HumanMessage([{"type": "text", "text": "Look"}, {"type": "image_url", "image_url": {"url": "x"}}]),
    SystemMessage("Answer in French"),
    AIMessage("", tool_calls=[{"name": "weather", "args": {"city": "Nice"}, "id": "c1"}]),
    ToolMessage("Rain", tool_call_id="c1", artifact={"mm": 1.5}, status="error"),
    AIMessage(
        "Il pleut",
        usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3},
        response_metadata={"model_name": "scripted-1"},
    ),
    FunctionMessage(content="f", name="old"),
    ChatMessage(content="A line", role="narrator"),
    RemoveMessage(id="1"),
    HumanMessage(""),
    AIMessage("\u200b"),
]


@pytest.fixture(params=["sync", "async"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def use(kind: str, service: RunningService) -> Iterator[Callable[..., Any]]:
    """Calls asynchronous methods of the classes of one client, or of the synchronous ones, which run in threads."""
    with asyncio.Runner() as runner, Souvenir(service.url) as souvenir:
        asynchronous = AsyncSouvenir(service.url)

        def run(function: Callable[[Any, type, type], Any]) -> Any:
            if kind == "sync":
                return runner.run(function(souvenir, SouvenirChatMessageHistory, SouvenirRetriever))
            return runner.run(function(asynchronous, AsyncSouvenirChatMessageHistory, AsyncSouvenirRetriever))

        yield run
        runner.run(asynchronous.aclose())


def in_memory() -> InMemoryChatMessageHistory:
    with warnings.catch_warnings():
        # LangChain deprecates the interface as a whole.
        warnings.simplefilter("ignore")
        return InMemoryChatMessageHistory()


def test_a_history_answers_like_langchains_own(use, kind):
    async def check(souvenir: Any, history_of: Any, _retriever_of: Any) -> None:
        chance, reference = random.Random(5), in_memory()
        ours = history_of(f"same-{kind}", souvenir, agent="agent")
        assert isinstance(ours, BaseChatMessageHistory)
        for _ in range(30):
            if chance.random() < 0.15:
                await ours.aclear()
                reference.clear()
            messages = chance.choices(MESSAGES, k=chance.randint(0, 4))
            await ours.aadd_messages(messages)
            await reference.aadd_messages(messages)
            assert await ours.aget_messages() == reference.messages

    use(check)


def test_the_synchronous_methods_do_the_same(service: RunningService):
    with Souvenir(service.url) as souvenir:
        history = SouvenirChatMessageHistory("plain", souvenir, agent="agent", user="alice")
        history.add_user_message("Hello")
        history.add_ai_message(AIMessage("Hello Alice"))
        assert str(history) == "Human: Hello\nAI: Hello Alice"
        history.add_messages(MESSAGES)
        assert history.messages == [HumanMessage("Hello"), AIMessage("Hello Alice"), *MESSAGES]
        stored = souvenir.sessions.messages("agent", "plain")
        assert {one.user for one in stored} == {"alice"}
        assert [(str(one.role), one.content) for one in stored][2:8] == [
            ("user", "My name is Alice"),
            ("user", "Look"),
            ("system", "Answer in French"),
            ("assistant", 'weather({"city": "Nice"})'),
            ("assistant", "Rain"),
            ("assistant", "Il pleut"),
        ]
        history.clear()
        assert history.messages == []


def test_messages_of_other_programs_are_read_too(service: RunningService):
    with Souvenir(service.url) as souvenir:
        souvenir.messages.add(agent_name="agent", session_id="other", role="user", content="Hello")
        [read] = SouvenirChatMessageHistory("other", souvenir, agent="agent").messages
        assert (type(read), read.content) == (HumanMessage, "Hello")


def test_a_message_that_is_too_large_is_refused(use, kind):
    async def check(souvenir: Any, history_of: Any, _retriever_of: Any) -> None:
        history = history_of(f"large-{kind}", souvenir, agent="agent")
        with pytest.raises(InvalidRequest, match="65536 bytes"):
            await history.aadd_messages([HumanMessage("x" * 70_000)])
        assert await history.aget_messages() == []

    use(check)


def texts(documents: list[Document]) -> list[str]:
    return [one.page_content for one in documents]


def test_a_retriever_returns_memories_as_documents(use, kind, service: RunningService):
    agent = f"documents-{kind}"

    async def check(souvenir: Any, _history_of: Any, retriever_of: Any) -> None:
        retriever = retriever_of(souvenir, agent=agent, k=1, source="notes")
        assert isinstance(retriever, BaseRetriever)
        [found] = await retriever.ainvoke("who leads billing?")
        assert isinstance(found, Document)
        assert found.page_content == "Alice leads billing"
        assert found.metadata["source"] == "notes/team"
        assert found.metadata["team"] == "billing"
        assert found.metadata["score"] > 0
        assert found.id == str(found.metadata["id"])
        assert await retriever.ainvoke(" ") == []
        assert [one.id for one in await retriever.ainvoke("who leads billing? " * 1000)] == [found.id]
        assert len(await retriever_of(souvenir, agent=agent, k=1).ainvoke("Alice", k=2)) == 2
        assert await retriever_of(souvenir, agent=agent, min_score=1.0).ainvoke("zebra") == []
        names: RunnableLambda[list[Document], list[str]] = RunnableLambda(texts)
        assert await (retriever | names).abatch(["billing", "Alice"]) == [["Alice leads billing"]] * 2

    with Souvenir(service.url, namespace=agent) as souvenir:
        souvenir.memories.add(text="Alice leads billing", source="notes/team", metadata={"team": "billing"})
        souvenir.memories.add(text="Alice leads billing elsewhere", source="other")
        if kind == "sync":
            [found] = SouvenirRetriever(souvenir, agent=agent, source="notes").invoke("who leads billing?")
            assert found.page_content == "Alice leads billing"
    use(check)


def test_the_asynchronous_classes_refuse_synchronous_calls():
    souvenir = AsyncSouvenir()
    history = AsyncSouvenirChatMessageHistory("s", souvenir, agent="a")
    retriever = AsyncSouvenirRetriever(souvenir, agent="a")
    calls: list[Callable[[], Any]] = [
        lambda: history.messages,
        lambda: history.add_messages([]),
        history.clear,
        lambda: retriever.invoke("x"),
    ]
    for call in calls:
        with pytest.raises(NotImplementedError, match="asynchronous methods only"):
            call()
