"""The tools of Pydantic AI against the real service: a scripted model of the framework calls them in a real run."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.messages import ModelRequest, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from souvenir_client import AsyncSouvenir, Souvenir
from souvenir_client.adapters.pydantic_ai import AsyncSouvenirToolset, SouvenirToolset
from tests.client.running import RunningService, free_port

Use = Callable[..., list[tuple[str, Any]]]


class Script:
    """A model that makes these calls one after the other, and what it read of each."""

    def __init__(self, calls: list[tuple[str, dict[str, Any]]]) -> None:
        self.calls = list(calls)
        self.seen: list[AgentInfo] = []

    def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.seen.append(info)
        if not self.calls:
            return ModelResponse(parts=[TextPart("Done")])
        name, arguments = self.calls.pop(0)
        return ModelResponse(parts=[ToolCallPart(name, arguments)])


def returned(messages: list[ModelMessage]) -> list[tuple[str, Any]]:
    requests = [one for one in messages if isinstance(one, ModelRequest)]
    parts = [part for one in requests for part in one.parts if isinstance(part, ToolReturnPart)]
    return [(part.outcome, part.content) for part in parts]


def run_sync(url: str, script: Script, **options: Any) -> list[tuple[str, Any]]:
    with Souvenir(url, max_retries=0) as souvenir:
        toolset = SouvenirToolset(souvenir, **options)
        result = Agent(FunctionModel(script), toolsets=[toolset]).run_sync("Hello")
        assert result.output == "Done"
        return returned(result.all_messages())


def run_async(url: str, script: Script, **options: Any) -> list[tuple[str, Any]]:
    async def use() -> list[tuple[str, Any]]:
        async with AsyncSouvenir(url, max_retries=0) as souvenir:
            toolset = AsyncSouvenirToolset(souvenir, **options)
            result = await Agent(FunctionModel(script), toolsets=[toolset]).run("Hello")
            assert result.output == "Done"
            return returned(result.all_messages())

    return asyncio.run(use())


@pytest.fixture(params=[run_sync, run_async], ids=["sync", "async"])
def run(request: pytest.FixtureRequest) -> Iterator[Use]:
    # run_sync makes an event loop, which nothing closes.
    with asyncio.Runner() as runner:
        asyncio.set_event_loop(runner.get_loop())
        yield request.param
        asyncio.set_event_loop(None)


def test_the_model_remembers_recalls_and_forgets(service: RunningService, run: Use):
    agent = f"all-{run.__name__}"
    [first, recalled] = run(
        service.url,
        Script([("remember", {"text": "Alice leads billing"}), ("recall", {"query": "who leads billing?"})]),
        agent=agent,
    )
    [memory] = recalled[1]
    assert first == ("success", f"Stored as memory {memory['id']}")
    assert (memory["text"], memory["source"]) == ("Alice leads billing", "pydantic-ai")
    with Souvenir(service.url, namespace=agent) as souvenir:
        assert souvenir.memories.get(memory["id"]).origin_class == "assistant"
    calls = [("forget", {"memory_id": memory["id"]}), ("recall", {"query": "billing", "limit": 1000})]
    read = run(service.url, Script(calls), agent=agent)
    assert read == [("success", f"Memory {memory['id']} is deleted"), ("success", [])]


def test_only_what_the_tool_stored_can_be_forgotten(service: RunningService, run: Use):
    agent = f"others-{run.__name__}"
    with Souvenir(service.url, namespace=agent) as souvenir:
        kept = souvenir.memories.add(text="The user's own note", source="notes-private").id
        read = run(service.url, Script([("forget", {"memory_id": kept})]), agent=agent, source="notes")
        sentence = f"Memory {kept} was not stored with this tool, so it cannot be forgotten with it"
        assert read == [("failed", sentence)]
        assert souvenir.memories.count().count == 1


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (("forget", {"memory_id": 12345}), "Memory ID 12345 not found"),
        (("remember", {"text": " "}), "body.text: Value error, the text is blank; give at least one visible character"),
        (("recall", {"query": ""}), "body.query: String should have at least 1 character"),
    ],
)
def test_a_refusal_is_a_result_with_one_sentence(service: RunningService, run: Use, call, sentence):
    [(outcome, text)] = run(service.url, Script([call]), agent="refused")
    assert (outcome, text[: len(sentence)]) == ("failed", sentence)


def test_a_service_that_does_not_answer_is_a_result_with_one_sentence(run: Use):
    url = f"http://127.0.0.1:{free_port()}"
    [(outcome, text)] = run(url, Script([("recall", {"query": "x"})]), agent="nobody")
    assert (outcome, text.startswith(f"No Souvenir answers at {url}")) == ("failed", True)


def test_what_the_model_is_told_of_the_tools(service: RunningService, run: Use):
    script = Script([])
    run(service.url, script, agent="told")
    tools = {tool.name: tool for tool in script.seen[0].function_tools}
    assert sorted(tools) == ["forget", "recall", "remember"]
    assert tools["recall"].description == (
        "Search the long-term memory by meaning and by words; the best memories come first."
    )
    assert tools["recall"].parameters_json_schema["properties"]["limit"] == {
        "default": 5,
        "description": "Maximum number of memories, up to 20.",
        "type": "integer",
    }
    assert "long-term memory" in (script.seen[0].instructions or "")


def test_a_toolset_that_only_reads_has_one_tool(service: RunningService, run: Use):
    script = Script([])
    run(service.url, script, agent="told", read_only=True)
    assert [tool.name for tool in script.seen[0].function_tools] == ["recall"]


def test_the_test_model_of_the_framework_calls_every_tool(service: RunningService):
    async def use() -> list[str]:
        async with AsyncSouvenir(service.url) as souvenir:
            toolset = AsyncSouvenirToolset(souvenir, agent="test-model")
            result = await Agent(TestModel(), toolsets=[toolset]).run("Hello")
            return [outcome for outcome, _ in returned(result.all_messages())]

    assert asyncio.run(use()) == ["success", "success", "failed"]
