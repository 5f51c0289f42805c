"""With `extract=True` the finished conversation is submitted for extraction.

The service of these tests has no model and stores sentences that state something.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import openai
import pytest

from souvenir_client import learning, session
from souvenir_client.interception.transcripts import MAX_CHARS, Transcripts
from souvenir_client.interception.wires import Turn
from tests.client import models
from tests.client.models import Memory, ask, ask_async
from tests.client.running import RunningService
from tests.vendors.llm import LLMVendor


@pytest.fixture(scope="module")
def vendor() -> Iterator[LLMVendor]:
    vendor = LLMVendor()
    vendor.script(lambda _: "I see.")
    vendor.start()
    yield vendor
    vendor.stop()


@pytest.fixture(scope="module")
def client(vendor: LLMVendor) -> Iterator[openai.OpenAI]:
    with models.openai_client(vendor) as client:
        yield client


@pytest.fixture(scope="module")
def memory(service) -> Iterator[Memory]:
    memory = Memory(service)
    yield memory
    memory.close()


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[RunningService]:
    """A service that learns from short conversations only."""
    strict = RunningService(tmp_path / "data", extract_fallback_add=True, max_extract_message_chars=1_000)
    strict.start()
    yield strict
    strict.stop()


def learned(memory: Memory, agent: str) -> list[str]:
    page = memory.client.in_namespace(agent).memories.list()
    return sorted(one.text for one in page.memories)


def test_a_finished_conversation_is_extracted_into_the_namespace_of_its_agent(service, client, memory):
    with learning("learner", service.url, extract=True, user="alice"):
        ask(client, "We decided to move billing to Postgres 17.")
        with learning("learner", service.url):
            ask(client, "I prefer tea over coffee.")
        assert learned(memory, "learner") == []
    assert learned(memory, "learner") == ["I prefer tea over coffee.", "We decided to move billing to Postgres 17."]
    memory.client.agents.delete_user("learner", "alice")
    assert learned(memory, "learner") == []


def test_recalled_text_is_not_extracted(service, vendor, client, memory):
    memory.teach("echo", "I prefer tea over coffee.")
    with learning("echo", service.url, extract=True):
        ask(client, "What do I prefer, tea or coffee?")
    assert "I prefer tea over coffee." in json.dumps(vendor.requests[-1].body)
    assert learned(memory, "echo") == []


def test_each_session_of_a_block_is_submitted_separately(service, client, memory):
    with learning("sessions", service.url, extract=True):
        for name, said in (("one", "I prefer tea over coffee."), ("two", "We decided to use Postgres 17.")):
            with session(name):
                ask(client, said)
    assert learned(memory, "sessions") == ["I prefer tea over coffee.", "We decided to use Postgres 17."]
    memory.client.sessions.delete("sessions", "one")
    assert learned(memory, "sessions") == ["We decided to use Postgres 17."]


def test_messages_of_two_users_in_a_session_are_extracted_separately(service, client, memory):
    with learning("users", service.url, user="alice", session_id="one", extract=True):
        ask(client, "I prefer tea over coffee.")
        with learning("users", service.url, user="bob"):
            ask(client, "We decided to use Postgres 17.")
        ask(client, "We decided to deploy on Mondays.")
    assert len(learned(memory, "users")) == 3
    memory.client.agents.delete_user("users", "alice")
    assert learned(memory, "users") == ["We decided to use Postgres 17."]


def test_a_refused_session_does_not_stop_the_extraction_of_others(strict, client, caplog):
    caplog.set_level(logging.WARNING, logger="souvenir_client")
    with learning("agent", strict.url, extract=True):
        for name, said in (("long", "So " * 500), ("longer", "So " * 600), ("short", "I prefer tea over coffee.")):
            with session(name):
                ask(client, said)
    with Memory(strict).client as stored:
        (memory,) = stored.in_namespace("agent").memories.list().memories
    assert memory.text == "I prefer tea over coffee."
    (warning,) = [record.getMessage() for record in caplog.records if record.name == "souvenir_client"]
    assert "not submitted for extraction" in warning


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
def test_only_the_process_that_began_a_block_submits_its_conversation(service, client, memory):
    block = learning("forked", service.url, session_id="one", extract=True)
    with block:
        ask(client, "I prefer tea over coffee.")
        child = os.fork()
        if not child:
            status = 1
            try:
                block.__exit__(None, None, None)
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(child, 0)[1] == 0
        assert learned(memory, "forked") == []
    assert learned(memory, "forked") == ["I prefer tea over coffee."]


def test_a_task_cancelled_while_its_block_ends_is_still_submitted(strict, vendor):
    async def run() -> None:
        async with models.async_openai_client(vendor) as client:
            said = asyncio.Event()

            async def converse() -> None:
                async with learning("agent", strict.url, extract=True):
                    strict.stop()
                    await ask_async(client, "I prefer tea over coffee.")
                    said.set()

            task = asyncio.create_task(converse())
            await said.wait()
            assert task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            strict.start()

    asyncio.run(run())
    with Memory(strict).client as stored:
        (memory,) = stored.in_namespace("agent").memories.list().memories
    assert memory.text == "I prefer tea over coffee."


def test_nothing_is_submitted_without_messages_or_without_extract(service, client, memory):
    with learning("quiet", service.url, extract=True):
        pass
    with learning("quiet", service.url):
        ask(client, "I prefer tea over coffee.")
    assert learned(memory, "quiet") == []


def test_a_service_without_extraction_causes_one_warning(own_service, client, caplog):
    caplog.set_level(logging.WARNING, logger="souvenir_client")
    for number in range(2):
        with learning("agent", own_service.url, extract=True, session_id="one"):
            ask(client, f"I prefer tea number {number}.")
    (warning,) = [record.getMessage() for record in caplog.records if record.name == "souvenir_client"]
    assert "not submitted for extraction" in warning
    assert "EXTRACT_PROVIDER" in warning
    with Memory(own_service).client as stored:
        assert len(stored.sessions.messages("agent", "one")) == 4


def test_a_transcript_includes_tool_calls_and_keeps_the_newest_turns():
    transcripts = Transcripts()
    calls = [{"id": "c1", "name": "look", "arguments": "{}"}]
    long = "日本\n" * 40_000
    for turn in (
        Turn("user", "first"),
        Turn("user", long),
        Turn("assistant", "", {"tool_calls": calls}),
        Turn("tool", "Found.", {"tool_result": {"tool_call_id": "c1", "name": "look"}}),
        Turn("assistant", ""),
        Turn("user", long),
        Turn("user", "\ud800 last"),
    ):
        transcripts.add("s", "alice", turn)
    ((session_id, who, text),) = transcripts.finished()
    assert (session_id, who) == ("s", "alice")
    assert 60_000 < len(text) <= MAX_CHARS
    turns = json.loads(text)
    assert [turn["role"] for turn in turns][-5:] == ["user", "assistant", "tool", "user", "user"]
    assert turns[-1]["content"] == "\ufffd last"
    assert turns[-4]["tool_calls"] == [{"id": "c1", "function": {"name": "look", "arguments": "{}"}}]
    assert list(transcripts.finished()) == []
    for number in range(9):
        transcripts.add("s", None, Turn("user", f"{number} {long}"))
    ((_, _, text),) = transcripts.finished()
    assert len(text) <= MAX_CHARS
    assert [turn["content"].split()[0] for turn in json.loads(text)] == ["7", "8"]
