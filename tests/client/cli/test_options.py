"""The options of every command: before and after its name, from the environment, and `--json` everywhere."""

from __future__ import annotations

import json

import click
import pytest

from scripts.build_cli_docs import commands
from souvenir_client import Souvenir
from souvenir_client.cli.options import GlobalOptions
from souvenir_client.cli.root import souvenir
from tests.client.running import RunningService, free_port

NOWHERE = "http://127.0.0.1:1"


@pytest.mark.parametrize(
    "arguments", [["--namespace", "here", "list", "--json"], ["--json", "list", "--namespace", "here"]]
)
def test_global_options_may_precede_or_follow_the_command(run, answer, arguments):
    if not answer("list", "--namespace", "here")["total"]:
        run("add", "Something.", "--namespace", "here")
    assert json.loads(run(*arguments).stdout)["total"] == 1


def test_global_options_may_be_between_a_group_and_its_command(run):
    assert json.loads(run("chat", "--json", "sessions", "nobody-yet").stderr)["error"]["status"] == 404


def test_the_last_value_of_an_option_wins(run, service):
    assert run("--server", NOWHERE, "list", "--server", service.url).exit_code == 0
    assert run("--server", service.url, "agents", "--server", NOWHERE, "list", "--server", service.url).exit_code == 0


def test_an_option_overrides_the_environment(run, service):
    assert run("list", "--server", service.url, SOUVENIR_URL=NOWHERE).exit_code == 0


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "1e9", "soon"])
def test_an_invalid_timeout_is_wrong_usage(run, seconds):
    done = run("list", "--timeout", seconds)
    assert done.exit_code == 2
    assert "--timeout" in done.stderr


def test_the_key_is_never_printed(run, service):
    secret = "mem_0123456789_not_a_key"
    for arguments in (["list"], ["doctor"], ["keys", "me"], ["list", "--timeout", "x"], ["nothing"]):
        for more in ([], ["--json"]):
            assert secret not in run(*arguments, "--api-key", secret, *more).output
            assert secret not in run(*arguments, *more, SOUVENIR_API_KEY=secret).output
    assert secret not in run("list", "--api-key", secret, SOUVENIR_URL=f"http://127.0.0.1:{free_port()}").output
    unsendable = run("list", SOUVENIR_API_KEY=f"{secret}\n{secret}")
    assert (unsendable.exit_code, secret in unsendable.output) == (2, False)
    assert secret not in repr(GlobalOptions(api_key=secret))


@pytest.fixture
def prepared(tmp_path, monkeypatch: pytest.MonkeyPatch, own_service: RunningService) -> dict[str, str]:
    """What the commands below name: an agent, a memory, a backup, two keys, files."""
    transcript = tmp_path / "talk.txt"
    transcript.write_text("User: Hello.", encoding="utf-8")
    with Souvenir(own_service.url) as client:
        client.agents.create(name="bot")
        client.messages.add(agent_name="bot", role="user", content="My favourite colour is blue.")
        memory = client.memories.add(text="Ana likes tea.", source="s").id
        backup = client.backups.create().backup_path.rpartition("/")[2]
        admin = client.keys.create(name="ana", role="admin")
    with Souvenir(own_service.url, api_key=admin.key) as client:
        other = client.keys.create(name="other", role="read-only", namespace="default")
    names = {"SERVER": own_service.url, "KEY": admin.key, "OTHER": other.id, "MEMORY": str(memory), "BACKUP": backup}
    monkeypatch.setenv("CONFIG_FILE", str(tmp_path / "config.json"))
    return {
        **names,
        "TRANSCRIPT": str(transcript),
        "FILE": str(tmp_path / "out.ndjson"),
        "GRAPH": str(tmp_path / "graph.json"),
    }


ANSWERS = {
    "doctor": "doctor",
    "add": "add Something.",
    "search": "search tea",
    "list": "list",
    "tags": "tags",
    "get": "get MEMORY",
    "agents list": "agents list",
    "agents create": "agents create new",
    "agents show": "agents show bot",
    "agents access": "agents access bot --no-logs",
    "context": "context bot colour",
    "chat history": "chat history bot",
    "chat sessions": "chat sessions bot",
    "export": "export FILE",
    "import": "import FILE",
    "graph export": "graph export bot GRAPH",
    "graph import": "graph import bot GRAPH",
    "backup": "backup",
    "backup list": "backup list",
    "keys list": "keys list",
    "keys create": "keys create more --role read-only --namespace default",
    "keys rotate": "keys rotate OTHER --yes",
    "keys limit": "keys limit OTHER --quota memories=10",
    "keys usage": "keys usage OTHER",
    "keys me": "keys me",
    "keys revoke": "keys revoke OTHER --yes",
    "config set": "config set souvenir_agent bot",
    "config list": "config list",
    "config get": "config get souvenir_agent",
    "config unset": "config unset souvenir_agent",
    "completion": "completion zsh",
    "delete": "delete MEMORY --yes",
    "agents delete": "agents delete bot --yes",
    "restore": "restore BACKUP --yes",
}
"""A call of each command that answers, in an order in which each can."""

REFUSED = {"extract": "extract TRANSCRIPT"}
"""Calls that this service refuses."""

HOOKS = {f"hook {name}" for name in ("session-start", "prompt", "stop", "pre-compact")}
ELSEWHERE = {"serve", "mcp", "install claude-code", *HOOKS}
"""What becomes another program (test_serving), speaks another protocol (mcp), changes settings, or ends its process."""


def leaves() -> set[str]:
    with click.Context(souvenir, info_name="souvenir") as context:
        found = list(commands(context))
        return {
            below.command_path.removeprefix("souvenir ")
            for below in found
            if not isinstance(below.command, click.Group) or below.command.invoke_without_command
        }


def test_every_command_prints_only_json_on_stdout(run, prepared):
    assert leaves() == {*ANSWERS, *REFUSED, *ELSEWHERE}
    for name, call in {**ANSWERS, **REFUSED}.items():
        arguments = [prepared.get(word, word) for word in call.split()]
        done = run(*arguments, "--json", SOUVENIR_URL=prepared["SERVER"], SOUVENIR_API_KEY=prepared["KEY"])
        if name in REFUSED:
            assert (done.exit_code, done.stdout) == (1, ""), name
            continue
        assert done.exit_code == 0, (name, done.output)
        assert isinstance(json.loads(done.stdout), dict), name
        if name.startswith("keys r"):
            continue
        assert prepared["KEY"] not in done.output, name


def test_an_export_to_stdout_is_one_json_object_per_line(run):
    run("add", "One.\nTwo.", "--namespace", "lines")
    header, memory = map(json.loads, run("export", "--json", "--namespace", "lines").stdout.splitlines())
    assert (header["count"], memory["text"]) == (1, "One.\nTwo.")
