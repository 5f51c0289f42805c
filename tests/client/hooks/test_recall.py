"""Relevant memories are returned as context, and nothing if there are none."""

from __future__ import annotations

import pytest

from souvenir.core.text import recalled
from souvenir_client import Souvenir
from souvenir_client.hooks.events import MAX_CONTEXT_CHARS, Hook, fitted
from souvenir_client.hooks.recall import MAX_QUERY_CHARS
from souvenir_client.wording import prefaced
from tests.client.hooks.losing import PASS

OPENING, CLOSING = "<recalled_memory id=", "</recalled_memory id="


@pytest.fixture
def client(service):
    with Souvenir(service.url) as client:
        yield client


@pytest.fixture
def remembered(client, editor):
    """The project's agent has a block, a memory, and something that was said in another session."""
    client.blocks.create(agent_name=editor.agent, label="human", value="Name: Alice")
    client.in_namespace(editor.agent).memories.add(text="The database runs on port 5433.", source="claude-code/x")
    client.messages.add(
        agent_name=editor.agent, session_id="earlier", role="user", content="The cache lives in Redis on host nine."
    )


def test_a_session_starts_with_blocks_and_relevant_memories(remembered, editor, client):
    words = " ".join(editor.project.split("-"))
    client.messages.add(agent_name=editor.agent, session_id="earlier", role="user", content=f"The {words} uses tabs.")
    context = editor.hook(Hook.SESSION_START, source="startup")
    assert editor.errors == ""
    assert context.startswith(prefaced(OPENING))
    assert "Name: Alice" in context
    assert "uses tabs." in context
    assert context.count(OPENING) == context.count(CLOSING) == 2


def test_a_prompt_gets_relevant_memories_and_the_blocks_once(remembered, editor):
    first = editor.hook(Hook.PROMPT, prompt="Where does the cache live, in Redis?")
    assert "Redis on host nine" in first
    assert "Name: Alice" in first
    second = editor.hook(Hook.PROMPT, prompt="Where does the cache live, in Redis?")
    assert "Redis on host nine" in second
    assert "Name: Alice" not in second


def test_changed_blocks_are_returned_again(remembered, editor, client):
    editor.hook(Hook.SESSION_START, source="startup")
    asked = {"prompt": "Where does the cache live, in Redis?"}
    assert "Name:" not in editor.hook(Hook.PROMPT, **asked)
    client.blocks.update(editor.agent, "human", value="Name: Bob")
    assert "Name: Bob" in editor.hook(Hook.PROMPT, **asked)
    assert "Name:" not in editor.hook(Hook.PROMPT, **asked)


def test_a_prompt_without_relevant_memories_gets_nothing(remembered, editor):
    editor.hook(Hook.SESSION_START, source="startup")
    assert editor.hook(Hook.PROMPT, prompt="zebra quantum umbrella") == ""
    assert editor.errors == ""


@pytest.mark.parametrize("prompt", ["", "  ", "/clear", "<task-notification>Redis cache live</task-notification>"])
def test_prompts_of_the_program_trigger_no_search(remembered, editor, prompt):
    assert editor.hook(Hook.PROMPT, prompt=prompt) == ""
    assert editor.errors == ""


def test_the_arguments_of_a_command_are_the_query(remembered, editor):
    assert "Redis on host nine" in editor.hook(Hook.PROMPT, prompt="/explain where does the cache live, in Redis?")


def test_messages_of_this_session_are_recalled_only_after_compaction(editor):
    editor.says(("user", "The cache lives in Redis on host nine."), ("user", "Where does the cache live, in Redis?"))
    editor.hook(Hook.STOP)
    asked = {"prompt": "Where does the cache live, in Redis?"}
    assert editor.hook(Hook.PROMPT, **asked) == ""
    assert "host nine" not in editor.hook(Hook.SESSION_START, source="resume")
    assert "host nine" in editor.hook(Hook.SESSION_START, source="compact")


@pytest.mark.parametrize("hook", [Hook.SESSION_START, Hook.PROMPT])
def test_an_unknown_project_gets_no_context(editor, hook):
    assert editor.hook(hook, source="startup", prompt="Where is the cache?") == ""
    assert editor.errors == ""


def test_a_very_long_prompt_is_searched_by_its_start_and_end(remembered, editor, losing):
    losing.replies.append(PASS)
    editor.hook(Hook.PROMPT, url=losing.url, prompt=f"Why is this?\n{'log line, ' * 50_000}\nWhat now?")
    [asked] = losing.requests
    assert editor.errors == ""
    assert len(asked.body["query"]) <= MAX_QUERY_CHARS + 1
    assert asked.body["query"].startswith("Why is this?")
    assert asked.body["query"].endswith("What now?")


def test_the_request_deadline_is_before_that_of_the_hook(remembered, editor, losing):
    losing.replies.append(PASS)
    editor.hook(Hook.PROMPT, url=losing.url, prompt="Where does the cache live?", budget_s=1.0)
    [asked] = losing.requests
    assert 100 < asked.body["deadline_ms"] < 1_000
    assert asked.body["session_id"] == editor.session_id


def test_oversized_blocks_are_truncated_with_their_fence_closed(editor, client):
    client.blocks.create(agent_name=editor.agent, label="notes", value="a line of the notes\n" * 2_000, limit=50_000)
    context = editor.hook(Hook.SESSION_START, source="startup")
    assert len(context) <= len(prefaced("x")) + MAX_CONTEXT_CHARS
    assert context[context.rindex("\n…\n") :].startswith(f"\n…\n{CLOSING}")


@pytest.mark.parametrize("room", range(0, 120, 7))
def test_every_opened_fence_is_closed_for_any_limit(room):
    parts = [recalled("one\ntwo", "0a"), "\n" + recalled("- three\n- four", "1b")]
    text = fitted(parts, room)
    assert len(text) <= room
    assert text.count(OPENING) == text.count(CLOSING)
