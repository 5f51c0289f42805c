"""A hook is never in the way of the editor: what goes wrong ends it in time, with a line for the log."""

from __future__ import annotations

import socket
import time

import pytest

from souvenir_client.hooks.events import Hook


@pytest.fixture
def silent():
    """The address of a service that takes connections and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize("hook", Hook, ids=lambda hook: hook.value)
def test_a_service_that_does_not_answer_is_waited_for_as_long_as_the_hook_has_time(editor_at, silent, hook):
    editor = editor_at(silent)
    editor.says(("user", "Where is the cache?"))
    began = time.monotonic()
    assert editor.hook(hook, budget_s=0.6, prompt="Where is the cache?") == ""
    assert 0.3 < time.monotonic() - began < 10
    assert "no answer within" in editor.errors
    assert editor.errors.count("\n") == 1


@pytest.mark.parametrize("url", ["ftp://memory", "memory:8900"])
def test_an_address_that_is_none_is_told(editor_at, url):
    editor = editor_at(url)
    assert editor.hook(Hook.PROMPT, prompt="Where is the cache?") == ""
    assert editor.errors.startswith("souvenir hook prompt: ")
    assert editor.errors.count("\n") == 1


def test_a_folder_that_cannot_be_written_to_is_told(editor):
    (editor.folder / "state").write_text("in the way", encoding="utf-8")
    editor.says(("user", "Where is the cache?"))
    editor.hook(Hook.STOP)
    assert "state" in editor.errors
    assert editor.errors.count("\n") == 1


def test_a_success_begins_the_count_of_failures_anew(editor_at, own_service):
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
    assert "Hooks do nothing for 60 s now." in editor.errors
