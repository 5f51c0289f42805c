"""A hook never blocks the editor: a failure ends it in time, with a line in the log."""

from __future__ import annotations

import socket
import time
from typing import Any

import pytest

from souvenir_client import Souvenir
from souvenir_client.hooks.events import Hook
from tests.vendors.server import Reply, Request, Server


@pytest.fixture
def silent():
    """The address of a service that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize("hook", Hook, ids=lambda hook: hook.value)
def test_an_unresponsive_service_is_awaited_until_the_deadline(editor_at, silent, hook):
    editor = editor_at(silent)
    editor.says(("user", "Where is the cache?"))
    began = time.monotonic()
    assert editor.hook(hook, budget_s=0.6, prompt="Where is the cache?") == ""
    assert time.monotonic() - began > 0.3
    assert "no answer within" in editor.errors
    assert editor.errors.count("\n") == 1


@pytest.mark.parametrize("url", ["ftp://memory", "memory:8900"])
def test_an_invalid_address_is_reported(editor_at, url):
    editor = editor_at(url)
    assert editor.hook(Hook.PROMPT, prompt="Where is the cache?") == ""
    assert editor.errors.startswith("souvenir hook prompt: ")
    assert editor.errors.count("\n") == 1


def test_an_unwritable_folder_is_reported(editor):
    (editor.folder / "state").write_text("in the way", encoding="utf-8")
    editor.says(("user", "Where is the cache?"))
    editor.hook(Hook.STOP)
    assert "state" in editor.errors
    assert editor.errors.count("\n") == 1


def test_a_success_resets_the_count_of_failures(editor_at, own_service):
    editor = editor_at(own_service.url)
    asked = {"prompt": "Where is the cache?"}
    own_service.stop()
    editor.hook(Hook.PROMPT, **asked)
    editor.hook(Hook.PROMPT, **asked)
    own_service.start()
    editor.hook(Hook.PROMPT, **asked)
    assert editor.errors == ""
    own_service.stop()
    for _ in range(2):
        editor.hook(Hook.PROMPT, **asked)
        assert "Hooks do nothing" not in editor.errors
    editor.hook(Hook.PROMPT, **asked)
    assert "Hooks are disabled for 60 s." in editor.errors


class Answering(Server[Request]):
    """A service that answers everything with one status."""

    def __init__(self, status: int) -> None:
        super().__init__(Request)
        self._status = status

    def reply(self, request: Request, queued: Any) -> Reply:
        return Reply(self._status, {"detail": "No.", "code": "no"})


@pytest.mark.parametrize(
    ("status", "rests"), [(400, False), (401, False), (403, False), (422, False), (429, True), (500, True), (503, True)]
)
def test_only_failures_of_the_service_open_the_breaker(editor_at, status, rests):
    server = Answering(status)
    server.start()
    editor = editor_at(server.url)
    for _ in range(4):
        editor.hook(Hook.PROMPT, prompt="Where is the cache?")
    server.stop()
    assert len(server.requests) == (3 if rests else 4)


@pytest.mark.parametrize("hook", [Hook.SESSION_START, Hook.PROMPT])
def test_context_is_returned_if_state_cannot_be_written(editor, hook):
    with Souvenir(editor.url) as client:
        client.blocks.create(agent_name=editor.agent, label="human", value="Name: Alice")
    (editor.folder / "state").write_text("in the way", encoding="utf-8")
    assert "Name: Alice" in editor.hook(hook, source="startup", prompt="Where is the cache?")
    assert "state" in editor.errors
    assert editor.errors.count("\n") == 1


def test_a_failure_is_reported_if_state_cannot_be_written(editor_at):
    editor = editor_at("http://127.0.0.1:9")
    (editor.folder / "state").write_text("in the way", encoding="utf-8")
    editor.hook(Hook.PROMPT, prompt="Where is the cache?")
    assert "No Souvenir answers" in editor.errors
    assert "state" in editor.errors
