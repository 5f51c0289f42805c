"""The real commands in separate processes, as an editor runs them: they never block it, whatever the service does."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from souvenir_client import Souvenir
from souvenir_client.cli.root import souvenir
from souvenir_client.hooks.state import locked
from souvenir_client.wording import PREFACE
from tests.client.running import free_port
from tests.vendors.server import Reply, Request, Server

CLIENT = Path(__file__).resolve().parents[3] / "client"
PROGRAM = f"""#!{sys.executable}
import sys
sys.path.insert(0, {str(CLIENT)!r})
from souvenir_client.command import main
main()
"""

PATIENCE_S = 30.0
"""Far more than any budget here, and less than what a slow service here holds an answer for."""


class SlowServer(Server[Request]):
    def __init__(self, reply: Reply) -> None:
        super().__init__(Request)
        self._reply = reply

    def reply(self, request: Request, queued: Any) -> Reply:
        return self._reply


@pytest.fixture
def program(tmp_path):
    """The program as an installation has it, in a folder whose name a shell would take apart."""
    path = tmp_path / "bin of mine" / "souvenir"
    path.parent.mkdir()
    path.write_text(PROGRAM, encoding="utf-8")
    path.chmod(0o755)
    return path


def start(command: Any, editor: Any, stdin: Any = subprocess.PIPE, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command,
        shell=isinstance(command, str),
        env={**os.environ, **editor.environment, **more},
        cwd=editor.cwd,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(command: Any, editor: Any, event: Any, **more: str) -> tuple[int, str, str]:
    process = start(command, editor, **more)
    text = event if isinstance(event, str) else json.dumps(event)
    output, errors = process.communicate(text, timeout=PATIENCE_S)
    return process.returncode, output, errors


def test_installed_hooks_recall_messages_in_the_next_session(program, editor, editor_at, service):
    home = editor.folder / "config"
    done = run([program, "install", "claude-code", "--yes"], editor, "", CLAUDE_CONFIG_DIR=str(home))
    assert done[0] == 0, done
    hooks = json.loads((home / "settings.json").read_text(encoding="utf-8"))["hooks"]
    commands = {name: groups[0]["hooks"][0]["command"] for name, groups in hooks.items()}
    budget = {"SOUVENIR_HOOK_BUDGET_S": "20"}
    editor.says(("user", "The cache lives in Redis on host nine."))
    assert run(commands["Stop"], editor, editor.event(hook_event_name="Stop"), **budget) == (0, "", "")
    later = editor_at(service.url, project=editor.project)
    asked = later.event(hook_event_name="UserPromptSubmit", prompt="Where does the cache live, in Redis?")
    status, output, errors = run(commands["UserPromptSubmit"], later, asked, **budget)
    assert (status, errors) == (0, "")
    specific = json.loads(output)["hookSpecificOutput"]
    assert specific["hookEventName"] == "UserPromptSubmit"
    assert specific["additionalContext"].startswith(PREFACE)
    assert "Redis on host nine" in specific["additionalContext"]


def test_an_unavailable_service_is_not_called_after_three_failures(program, editor_at):
    server = SlowServer(Reply(status=500))
    server.port = free_port()
    editor = editor_at(server.url)
    command, asked = [program, "hook", "prompt"], editor.event(prompt="Where is the cache?")
    tries = [run(command, editor, asked, SOUVENIR_HOOK_BUDGET_S="20") for _ in range(3)]
    assert [(status, output) for status, output, _ in tries] == [(0, "")] * 3
    assert [errors.count("\n") for *_, errors in tries] == [1, 1, 1]
    assert "Hooks are disabled for 60 s." in tries[2][2]
    server.start()
    try:
        assert run(command, editor, asked) == (0, "", "")
        assert server.requests == []
    finally:
        server.stop()


@pytest.mark.parametrize("slow", [Reply(drips=True), Reply(drips_headers=True)], ids=["body", "headers"])
def test_a_slow_answer_does_not_exceed_the_deadline_of_the_hook(program, editor_at, slow):
    server = SlowServer(slow)
    server.start()
    editor, errors, budget_s = editor_at(server.url), "", ""
    # A machine that is busy may take all of the time to start the program.
    for budget_s in ("2", "4", "8"):
        event = editor.event(prompt="Where is the cache?")
        status, output, errors = run([program, "hook", "prompt"], editor, event, SOUVENIR_HOOK_BUDGET_S=budget_s)
        assert (status, output) == (0, "")
        if server.requests:
            break
    # Only this ends what the service sends.
    server.stop()
    assert f"the hook took longer than its {budget_s} s" in errors


def test_blocked_output_does_not_keep_the_process_alive(program, editor_at):
    """Another hook keeps the lock of the breaker."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        editor = editor_at(f"http://127.0.0.1:{silent.getsockname()[1]}")
        name = hashlib.sha256(editor.url.encode()).hexdigest()[:16]
        with locked(editor.folder / "state" / "souvenir" / f"breaker-{name}.json", wait_s=0):
            event = editor.event(prompt="Where is the cache?")
            done = run([program, "hook", "prompt"], editor, event, SOUVENIR_HOOK_BUDGET_S="2")
    assert done[:2] == (0, "")


def test_an_unterminated_input_does_not_block_the_hook(program, editor):
    process = start([program, "hook", "prompt"], editor, SOUVENIR_HOOK_BUDGET_S="1")
    assert process.wait(PATIENCE_S) == 0
    process.communicate()


@pytest.mark.parametrize("event", ["", "not JSON", "[]", "{}", '{"session_id": 3}'])
def test_an_invalid_event_is_reported_and_succeeds(program, editor, event):
    status, output, errors = run([program, "hook", "stop"], editor, event)
    assert (status, output) == (0, "")
    assert errors.count("\n") == 1


def test_a_hook_loads_no_unneeded_modules(editor):
    command = [sys.executable, "-X", "importtime", "-m", "souvenir_client.command", "hook", "prompt"]
    asked = editor.event(prompt="Where is the cache?")
    status, _, errors = run(command, editor, asked, PYTHONPATH=str(CLIENT), SOUVENIR_HOOK_BUDGET_S="20")
    loaded = {line.rpartition("|")[2].strip() for line in errors.splitlines()}
    assert status == 0
    assert {"httpx", "souvenir_client.records.context"} <= loaded
    unneeded = {"rich", "pygments", "asyncio", "souvenir_client.sync.client", "souvenir_client.records.tiers"}
    assert loaded & unneeded == set()


def test_hooks_can_be_switched_off(program, editor):
    editor.says(("user", "A secret."))
    assert run([program, "hook", "stop"], editor, editor.event(), SOUVENIR_HOOKS="off") == (0, "", "")
    with Souvenir(editor.url) as client:
        assert editor.agent not in [agent.name for agent in client.agents.list().agents]


@pytest.mark.parametrize(
    "arguments",
    [("hook", "bogus"), ("hook", "--bogus"), ("hook", "prompt", "--bogus"), ("hook", "stop", "more"), ("hook",)],
)
def test_wrong_usage_does_not_exit_with_2_which_would_block_the_editor(arguments):
    done = CliRunner().invoke(souvenir, arguments)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr


def test_a_hook_without_the_cli_extra_does_not_block_the_editor(editor):
    code = "import sys; sys.modules['rich'] = None; from souvenir_client.command import main; main()"
    status, output, _ = run([sys.executable, "-c", code, "hook", "prompt"], editor, "{}", PYTHONPATH=str(CLIENT))
    assert (status, output) == (1, "")


def install(*arguments: str, **environment: str) -> Any:
    return CliRunner(env=environment).invoke(souvenir, ["install", "claude-code", *arguments])


@pytest.fixture
def home(tmp_path, program, monkeypatch):
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "config"))
    return tmp_path / "config"


def test_without_a_terminal_the_change_is_shown_only(home):
    done = install()
    assert done.exit_code == 1
    assert "+++ " in done.stdout
    assert "hook session-start" in done.stdout
    assert "--yes" in done.stderr
    assert not home.exists()


def test_a_second_installation_changes_nothing_and_a_removal_reverts_it(home):
    assert install("--yes").exit_code == 0
    again = install()
    assert (again.exit_code, "nothing to change" in again.stdout) == (0, True)
    assert install("--remove", "--yes").exit_code == 0
    assert json.loads((home / "settings.json").read_text(encoding="utf-8")) == {}


def test_a_project_can_have_separate_settings(home, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert install("--project", "--yes").exit_code == 0
    assert (tmp_path / ".claude" / "settings.json").is_file()
    assert not home.exists()


def test_settings_with_comments_are_refused_in_a_sentence(home):
    home.mkdir()
    (home / "settings.json").write_text("{} // mine", encoding="utf-8")
    done = install("--yes")
    assert done.exit_code == 2
    assert "not plain JSON" in done.stderr
    assert (home / "settings.json").read_text(encoding="utf-8") == "{} // mine"


def test_the_change_is_available_as_json(home):
    done = json.loads(install("--yes", "--json").stdout)
    assert (done["path"], done["written"]) == (str(home / "settings.json"), True)
    assert done["diff"].startswith("--- ")


def test_the_key_is_not_written_to_the_settings(home):
    install("--yes", SOUVENIR_API_KEY="sv-secret")
    assert "sv-secret" not in (home / "settings.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(("option", "instead"), [("--api-key", "SOUVENIR_API_KEY"), ("--namespace", "SOUVENIR_AGENT")])
def test_an_invalid_setting_is_refused_in_a_sentence(home, option, instead):
    done = install("--yes", option, "sv-secret")
    assert (done.exit_code, done.stdout, home.exists()) == (2, "", False)
    assert instead in done.stderr
    assert "sv-secret" not in done.stderr


def test_only_an_explicit_address_is_shown_and_written(home):
    url = "http://memory.example:8900"
    assert f'+    "SOUVENIR_URL": "{url}"' in install("--server", f"{url}/").stdout
    install("--yes", SOUVENIR_URL=url)
    assert "env" not in json.loads((home / "settings.json").read_text(encoding="utf-8"))
    install("--yes", "--server", f"{url}/")
    assert json.loads((home / "settings.json").read_text(encoding="utf-8"))["env"] == {"SOUVENIR_URL": url}
    assert install("--yes", "--server", "nowhere").exit_code == 2


def test_a_removal_removes_only_the_given_address(home):
    home.mkdir()
    path = home / "settings.json"
    path.write_text('{"env": {"MINE": "1"}}', encoding="utf-8")
    install("--yes", "--server", "http://one.example:8900")
    install("--yes", "--remove", "--server", "http://two.example:8900")
    assert json.loads(path.read_text(encoding="utf-8"))["env"] == {
        "MINE": "1",
        "SOUVENIR_URL": "http://one.example:8900",
    }
    install("--yes", "--remove", "--server", "http://one.example:8900")
    assert json.loads(path.read_text(encoding="utf-8")) == {"env": {"MINE": "1"}}


@pytest.mark.parametrize(("said", "status"), [("y", 0), ("n", 1), ("", 1)])
def test_the_user_is_asked_for_confirmation(program, editor, said, status):
    ours, theirs = pty.openpty()
    home = editor.folder / "config"
    process = start([program, "install", "claude-code"], editor, theirs, CLAUDE_CONFIG_DIR=str(home))
    os.write(ours, f"{said}\n".encode())
    output, errors = process.communicate(timeout=PATIENCE_S)
    os.close(ours)
    os.close(theirs)
    assert (process.returncode, home.exists()) == (status, status == 0), errors
    assert "hook session-start" in output
