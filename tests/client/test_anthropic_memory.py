"""Claude's memory tool through the real SDK's tool runner: a scripted model calls it, and reads what it did."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from anthropic.types.beta import BetaMessageParam

from souvenir_client import AsyncSouvenir, Souvenir
from souvenir_client.adapters.anthropic_memory import AsyncSouvenirMemoryTool, SouvenirMemoryTool
from tests.client.models import MODEL, anthropic_client, async_anthropic_client
from tests.client.running import RunningService, free_port
from tests.vendors.llm import LLMVendor, call, says

Run = Callable[..., list[tuple[str, bool]]]

ASKED: list[BetaMessageParam] = [{"role": "user", "content": "Remember it"}]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "memory-tool.md"
FILE = "/memories/people.md"
COMMANDS: list[tuple[dict[str, Any], str]] = [
    ({"command": "view", "path": "/memories"}, "0B\t/memories"),
    (
        {"command": "create", "path": FILE, "file_text": "Alice leads billing.\n"},
        f"File created successfully at: {FILE}",
    ),
    (
        {"command": "str_replace", "path": FILE, "old_str": "Alice", "new_str": "Bob"},
        "     1\tBob leads billing.\n     2\t",
    ),
    (
        {"command": "insert", "path": FILE, "insert_line": 0, "insert_text": "# People"},
        f"The file {FILE} has been edited.",
    ),
    ({"command": "view", "path": FILE, "view_range": [2, 2]}, "     2\tBob leads billing."),
    (
        {"command": "rename", "old_path": FILE, "new_path": "/memories/team.md"},
        f"Successfully renamed {FILE} to /memories/team.md",
    ),
    ({"command": "delete", "path": "/memories/team.md"}, "Successfully deleted /memories/team.md"),
]


@pytest.fixture
def vendor() -> Iterator[LLMVendor]:
    vendor = LLMVendor()
    vendor.start()
    yield vendor
    vendor.stop()


def run(vendor: LLMVendor, url: str, agent: str, commands: list[Any]) -> list[tuple[str, bool]]:
    """Let the model make these calls one after the other; return what it read, and whether that was an error."""
    script(vendor, commands)
    with Souvenir(url, max_retries=0) as souvenir, anthropic_client(vendor) as client:
        tool = SouvenirMemoryTool(souvenir, agent=agent, cache_control={"type": "ephemeral"})
        runner = client.beta.messages.tool_runner(model=MODEL, max_tokens=100, messages=ASKED, tools=[tool])
        assert runner.until_done().stop_reason == "end_turn"
    return results(vendor)


def run_async(vendor: LLMVendor, url: str, agent: str, commands: list[Any]) -> list[tuple[str, bool]]:
    script(vendor, commands)

    async def use() -> None:
        async with AsyncSouvenir(url, max_retries=0) as souvenir, async_anthropic_client(vendor) as client:
            tool = AsyncSouvenirMemoryTool(souvenir, agent=agent, cache_control={"type": "ephemeral"})
            runner = client.beta.messages.tool_runner(model=MODEL, max_tokens=100, messages=ASKED, tools=[tool])
            assert (await runner.until_done()).stop_reason == "end_turn"

    asyncio.run(use())
    return results(vendor)


def script(vendor: LLMVendor, commands: list[Any]) -> None:
    vendor.replies += [
        says("", calls=[call("memory", f"toolu_{number}", **command)]) for number, command in enumerate(commands)
    ]
    vendor.replies.append("Done")


def results(vendor: LLMVendor) -> list[tuple[str, bool]]:
    """Return the tool result of each call, as sent to the model in the next request."""
    assert vendor.requests[0].body["tools"] == [
        {"type": "memory_20250818", "name": "memory", "cache_control": {"type": "ephemeral"}}
    ]
    blocks = [block for request in vendor.requests[1:] for block in request.body["messages"][-1]["content"]]
    return [(text_of(block["content"]), block.get("is_error", False)) for block in blocks]


def text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


@pytest.fixture(params=[run, run_async], ids=["sync", "async"])
def tool_loop(request: pytest.FixtureRequest) -> Run:
    found: Run = request.param
    return found


def test_the_model_uses_every_command(vendor: LLMVendor, service: RunningService, tool_loop: Run):
    read = tool_loop(vendor, service.url, f"all-{tool_loop.__name__}", [command for command, _ in COMMANDS])
    assert [is_error for _, is_error in read] == [False] * len(COMMANDS)
    assert [text.endswith(expected) for (text, _), (_, expected) in zip(read, COMMANDS, strict=True)] == [True] * 7


def test_what_the_model_wrote_is_a_memory_of_its_agent(vendor: LLMVendor, service: RunningService, tool_loop: Run):
    agent = f"found-{tool_loop.__name__}"
    tool_loop(vendor, service.url, agent, [COMMANDS[1][0]])
    with Souvenir(service.url, namespace=agent) as souvenir:
        [found] = souvenir.memories.search(query="who leads billing?").results
        assert (found.text, found.source) == ("Alice leads billing.\n", "memories/people.md")


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        ({"command": "view", "path": FILE}, f"The path {FILE} does not exist. Please provide a valid path."),
        ({"command": "create", "path": FILE}, "The command create takes `file_text`; send it"),
        (
            {"command": "delete", "path": "/memories/../etc"},
            "A path has no name . or ..; send the whole path from /memories on",
        ),
        ({"command": "view", "path": 5}, "body.path: Input should be a valid string (422, invalid_request)"),
    ],
)
def test_a_refusal_is_an_error_with_one_sentence(vendor, service, tool_loop, command, sentence):
    assert tool_loop(vendor, service.url, "refused", [command]) == [(sentence, True)]


def test_fields_that_the_tool_does_not_have_are_not_sent(vendor: LLMVendor, service: RunningService, tool_loop: Run):
    sent = {"command": "view", "path": "/memories", "idempotency_key": "mine", "agent_name": "other", "depth": 3}
    [(text, is_error)] = tool_loop(vendor, service.url, "extra", [sent])
    assert (text.splitlines()[-1], is_error) == ("0B\t/memories", False)


def test_a_service_that_does_not_answer_is_an_error_with_one_sentence(vendor: LLMVendor, tool_loop: Run):
    url = f"http://127.0.0.1:{free_port()}"
    [(text, is_error)] = tool_loop(vendor, url, "nobody", [COMMANDS[0][0]])
    assert is_error
    assert text.startswith(f"No Souvenir answers at {url}")


def test_the_example_of_the_page_works_as_printed(
    vendor: LLMVendor, service: RunningService, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    [example] = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    for name, value in {
        "SOUVENIR_URL": service.url,
        "ANTHROPIC_BASE_URL": vendor.url,
        "ANTHROPIC_API_KEY": "sk-scripted",
    }.items():
        monkeypatch.setenv(name, value)
    script(vendor, [COMMANDS[1][0]])
    exec(compile(example, PAGE.name, "exec"), {"__name__": "example"})
    assert capsys.readouterr().out == "Done\n"
    assert vendor.requests[-1].body["messages"][-1]["content"][0]["content"] == COMMANDS[1][1]
