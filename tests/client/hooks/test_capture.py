"""Each message of a session is stored once, also after failures, damage and restarts."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import httpx
import pytest

from souvenir_client import Souvenir
from souvenir_client.hooks.capture import KNOWN_PAGE
from souvenir_client.hooks.events import Hook
from souvenir_client.hooks.state import locked, session_file
from souvenir_client.hooks.transcripts import WINDOW_TURNS
from tests.client.hooks.losing import PASS
from tests.client.running import RunningService
from tests.vendors.llm import LLMVendor
from tests.vendors.server import Reply, Request, Server

TEXT = {"type": "text", "text": "I put it into Redis."}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "Edit", "input": {"file_path": "cache.py"}}


class Proxy(Server[Request]):
    """Something before the service, with pages of its own."""

    def __init__(self, status: int) -> None:
        super().__init__(Request)
        self._status = status

    def reply(self, request: Request, queued: Any) -> Reply:
        return Reply(self._status, body=b"<html>No.</html>")


def sent_file(editor) -> Path:
    return session_file(editor.folder / "state" / "souvenir", editor.session_id, "sent")


def test_a_stop_stores_messages_since_the_last_one(editor, stored):
    editor.says(("user", "Where is the cache?"), ("assistant", [TEXT, CALL]))
    editor.hook(Hook.STOP)
    first = ["Where is the cache?", "I put it into Redis.", 'Calls Edit({"file_path": "cache.py"})']
    assert (editor.errors, stored(editor)) == ("", first)
    editor.hook(Hook.STOP)
    editor.says(("user", "Thanks."))
    editor.hook(Hook.STOP)
    assert stored(editor) == [*first, "Thanks."]


def test_a_message_has_the_time_role_and_tool_call_of_its_turn(editor, service):
    editor.says(("user", "Where?"), ("assistant", [CALL]))
    editor.hook(Hook.STOP)
    with Souvenir(service.url) as client:
        call, asked = client.messages.list(editor.agent, session_id=editor.session_id)
    assert (asked.role, call.role) == ("user", "assistant")
    assert str(asked.created_at).startswith("2026-11-22")
    assert (call.metadata or {})["tool_calls"] == [
        {"id": "toolu_1", "name": "Edit", "arguments": {"file_path": "cache.py"}}
    ]


def test_a_compaction_hook_stores_every_message(editor, stored):
    said = [("user", f"turn {number}") for number in range(2 * WINDOW_TURNS + 20)]
    editor.says(*said)
    editor.hook(Hook.PRE_COMPACT, trigger="auto")
    assert stored(editor) == [text for _, text in said]


def test_messages_lost_in_an_outage_are_sent_by_the_next_hook(editor, service, stored):
    editor.says(("user", "first"))
    editor.hook(Hook.STOP)
    editor.says(("user", "while it was away"))
    editor.hook(Hook.STOP, url="http://127.0.0.1:9")
    assert "No Souvenir answers" in editor.errors
    editor.says(("user", "after"))
    editor.hook(Hook.STOP)
    assert stored(editor) == ["first", "while it was away", "after"]


def test_a_lost_answer_does_not_store_messages_twice(editor, losing, stored):
    editor.says(("user", "first"))
    editor.hook(Hook.STOP)
    editor.says(("user", "its answer is lost"))
    editor.hook(Hook.STOP, url=losing.url)
    assert "No Souvenir answers" in editor.errors
    editor.says(("user", "after"))
    editor.hook(Hook.STOP)
    assert stored(editor) == ["first", "its answer is lost", "after"]


@pytest.mark.parametrize("damage", [None, b"", b"{", b'{"stored": {"offset": 3}}', b"\xff\x00"])
def test_without_state_the_hook_asks_the_service_for_its_position(editor, stored, damage):
    editor.says(("user", "first"), ("user", "second"))
    editor.hook(Hook.STOP)
    file = sent_file(editor)
    file.unlink() if damage is None else file.write_bytes(damage)
    editor.says(("user", "third"))
    editor.hook(Hook.STOP)
    assert (editor.errors, stored(editor)) == ("", ["first", "second", "third"])


def test_a_rewritten_transcript_is_resumed_after_the_last_turn(editor, stored):
    editor.says(("user", "first"), ("user", "second"))
    editor.hook(Hook.STOP)
    before = editor.transcript.read_text(encoding="utf-8")
    editor.transcript.write_text('{"type": "summary", "summary": "put before"}\n' + before, encoding="utf-8")
    editor.says(("user", "third"))
    editor.hook(Hook.STOP)
    assert stored(editor) == ["first", "second", "third"]


@pytest.mark.parametrize("has_note", [True, False])
def test_after_a_rewind_only_new_messages_are_stored(editor, stored, has_note):
    lines = [editor.line("user", f"turn {number}") for number in range(10)]
    editor.writes(*lines)
    editor.hook(Hook.STOP)
    if not has_note:
        sent_file(editor).unlink()
    editor.transcript.write_bytes(b"")
    editor.writes(*lines[:4], editor.line("user", "another way"), lines[7], editor.line("user", "and on"))
    editor.hook(Hook.STOP)
    editor.hook(Hook.STOP)
    said = [f"turn {number}" for number in range(10)]
    assert (editor.errors, stored(editor)) == ("", [*said, "another way", "and on"])


def test_after_a_rewind_a_lost_answer_does_not_store_messages_twice(editor, losing, stored):
    lines = [editor.line("user", f"turn {number}") for number in range(3)]
    editor.writes(*lines[:2])
    editor.hook(Hook.STOP)
    editor.writes(lines[2])
    editor.hook(Hook.STOP, url=losing.url)
    assert "No Souvenir answers" in editor.errors
    editor.transcript.write_bytes(b'{"type": "summary"}\n')
    editor.writes(*lines, editor.line("user", "after"))
    editor.hook(Hook.STOP)
    assert (editor.errors, stored(editor)) == ("", ["turn 0", "turn 1", "turn 2", "after"])


def test_a_rewound_transcript_of_many_turns_is_stored_once_over_several_hooks(editor, stored):
    lines = [editor.line("user", f"turn {number}") for number in range(KNOWN_PAGE + 20)]
    editor.writes(*lines)
    editor.hook(Hook.PRE_COMPACT, trigger="auto")
    rewound = [*lines[:-1], *(editor.line("user", f"new {number}") for number in range(WINDOW_TURNS + 20))]
    editor.transcript.write_bytes(b"")
    editor.writes(rewound[0], rewound[-1], *rewound[1:-1])
    editor.hook(Hook.STOP)
    editor.hook(Hook.STOP)
    contents = stored(editor)
    assert (editor.errors, len(contents)) == ("", len(set(contents)))
    assert set(contents) == {entry["message"]["content"] for entry in (*lines, *rewound)}


def test_a_copy_of_another_session_is_not_stored_again(editor, editor_at, service, stored):
    editor.says(("user", "of the first session"))
    editor.hook(Hook.STOP)
    resumed = editor_at(service.url, project=editor.project)
    resumed.transcript.write_bytes(editor.transcript.read_bytes())
    resumed.says(("user", "of the second"))
    resumed.hook(Hook.STOP)
    assert stored(resumed) == ["of the second"]


def test_a_refused_turn_does_not_block_the_next_ones(editor, service, stored):
    editor.says(("user", "first"))
    editor.hook(Hook.STOP)
    with Souvenir(service.url) as client:
        client.sessions.end(editor.agent, editor.session_id)
    editor.says(("user", "after the end"))
    editor.hook(Hook.STOP)
    assert "1 turns were skipped" in editor.errors
    editor.hook(Hook.STOP)
    assert (editor.errors, stored(editor)) == ("", ["first"])


@pytest.mark.parametrize("status", [400, 405, 413, 502])
def test_messages_refused_by_a_proxy_are_not_skipped(editor, stored, status):
    editor.says(("user", "first"))
    editor.hook(Hook.STOP)
    editor.says(("user", "second"))
    proxy = Proxy(status)
    proxy.start()
    editor.hook(Hook.STOP, url=proxy.url)
    proxy.stop()
    assert editor.errors
    editor.hook(Hook.STOP)
    assert stored(editor) == ["first", "second"]


def test_concurrent_hooks_of_a_session_do_not_both_send(editor, stored):
    editor.says(("user", "first"))
    editor.hook(Hook.STOP)
    editor.says(("user", "second"))
    with locked(sent_file(editor), wait_s=0):
        editor.hook(Hook.STOP)
    assert stored(editor) == ["first"]
    editor.hook(Hook.STOP)
    assert stored(editor) == ["first", "second"]


def test_without_time_left_the_next_hook_continues(editor, stored):
    editor.says(("user", "first"))
    editor.hook(Hook.STOP)
    editor.says(("user", "second"))
    editor.hook(Hook.STOP, budget_s=0.2)
    assert stored(editor) == ["first"]
    editor.hook(Hook.STOP)
    assert stored(editor) == ["first", "second"]


def test_the_last_answer_is_awaited_for_at_most_a_second(editor, stored):
    """It comes with the next hook if it is written down later."""
    editor.says(("user", "Where is the cache?"))
    editor.hook(Hook.STOP, last_assistant_message="In Redis.")
    editor.says(("assistant", [{"type": "text", "text": "In Redis."}]), ("user", "Thanks."))
    editor.hook(Hook.STOP, last_assistant_message="In Redis.")
    assert stored(editor) == ["Where is the cache?", "In Redis.", "Thanks."]


def test_a_missing_transcript_is_reported_and_not_a_service_failure(editor):
    for _ in range(4):
        editor.hook(Hook.STOP, transcript_path=str(editor.folder / "missing.jsonl"))
        assert "missing.jsonl" in editor.errors


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_a_transcript_that_is_not_a_regular_file_is_not_read(editor, kind):
    path = {"pipe": editor.folder / "pipe", "device": Path("/dev/zero"), "folder": editor.folder}[kind]
    if kind == "pipe":
        os.mkfifo(path)
    for _ in range(3):
        editor.hook(Hook.STOP, transcript_path=str(path))
        assert "not a regular file" in editor.errors
        assert editor.errors.count("\n") == 1


class Learning:
    """A service with a scripted model, and what it was asked to learn from."""

    def __init__(self, data: Path) -> None:
        self.vendor = LLMVendor()
        self.vendor.start()
        self.vendor.script(lambda request: {"facts": []})
        self.service = RunningService(data, **self.vendor.settings("openai"))
        self.service.start()

    def jobs(self, agent: str) -> list[dict[str, Any]]:
        answer = httpx.get(f"{self.service.url}/jobs", headers={"X-Namespace": agent})
        return list(answer.json()["jobs"])

    def stop(self) -> None:
        self.service.stop()
        self.vendor.stop()


@pytest.fixture(scope="module")
def learning(tmp_path_factory):
    running = Learning(tmp_path_factory.mktemp("learning") / "data")
    yield running
    running.stop()


@pytest.fixture
def learner(learning, editor_at):
    return editor_at(learning.service.url)


def test_with_a_model_messages_are_extracted_once(learner, learning):
    learner.says(("user", "We deploy on Fridays."), ("assistant", [CALL]))
    learner.hook(Hook.STOP)
    learner.hook(Hook.STOP)
    assert (learner.errors, len(learning.jobs(learner.agent))) == ("", 1)


def test_extraction_waits_while_claude_continues_after_a_stop(learner, learning):
    learner.says(("user", "We deploy on Mondays."))
    learner.hook(Hook.STOP, stop_hook_active=True)
    assert learning.jobs(learner.agent) == []
    learner.hook(Hook.STOP, stop_hook_active=False)
    assert len(learning.jobs(learner.agent)) == 1


def test_tool_calls_alone_are_not_extracted(learner, learning):
    learner.says(("assistant", [CALL]))
    learner.hook(Hook.STOP)
    assert learning.jobs(learner.agent) == []


def test_a_long_conversation_is_extracted_in_few_requests(learner, learning):
    learner.says(*(("user", f"{number} " + "word " * 3_000) for number in range(12)))
    learner.hook(Hook.STOP)
    assert len(learning.jobs(learner.agent)) == 1
    learner.hook(Hook.PRE_COMPACT, trigger="manual")
    assert len(learning.jobs(learner.agent)) == 4


def test_requests_name_their_origin_and_reason(editor, losing, service):
    editor.says(("user", "We deploy on Fridays."))
    editor.hook(Hook.STOP)
    editor.says(("user", "We use tabs."), ("assistant", [TEXT, CALL]))
    losing.replies.append(PASS)
    editor.hook(Hook.PRE_COMPACT, url=losing.url)
    _, asked = losing.requests
    assert (asked.path, asked.headers["x-namespace"]) == ("/memory/extract", editor.agent)
    assert asked.body["source"] == f"claude-code/{editor.project}"
    assert (asked.body["context"], asked.body["session"]) == ("pre_compact", editor.session_id)
    assert asked.body["document_at"].startswith("2026-11-22")
    turns = [("user", "We use tabs."), ("assistant", "I put it into Redis.")]
    assert [(turn["role"], turn["content"]) for turn in json.loads(asked.body["messages"])] == turns
    losing.replies.append(PASS)
    editor.hook(Hook.PRE_COMPACT, url=losing.url)
    again = losing.requests[2]
    assert again.headers["idempotency-key"] == asked.headers["idempotency-key"]
    assert (editor.errors, again.body) == ("", asked.body)
