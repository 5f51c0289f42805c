"""Termination of commands: exit code, one sentence on stderr, and silence if the output is closed."""

from __future__ import annotations

import json
import os
import pty
import signal
import socket
import subprocess
import sys

import pytest

from souvenir_client import Souvenir
from tests.client.cli.entry import COMMAND, TIMEOUT_S, environment, run_in, souvenir
from tests.client.running import free_port


def test_the_tested_entry_point_is_that_of_the_distribution():
    import tomllib
    from pathlib import Path

    content = tomllib.loads((Path(__file__).resolve().parents[3] / "client" / "pyproject.toml").read_text("utf-8"))
    assert content["project"]["scripts"] == {"souvenir": "souvenir_client.command:main"}


def test_without_the_extra_one_sentence_says_how_to_install_it():
    code = "import sys; sys.modules['rich'] = None; from souvenir_client.command import main; main()"
    done = run_in([sys.executable, "-c", code], environment())
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == 'The command line needs an extra: pip install "souvenir-client[cli]"\n'


def test_an_unreachable_service_exits_with_3():
    done = souvenir("list", "--server", f"http://127.0.0.1:{free_port()}", "--json")
    assert (done.returncode, done.stdout) == (3, "")
    assert json.loads(done.stderr)["error"]["exit_code"] == 3


def test_a_timeout_exits_with_3(run):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        done = run("get", "1", "--server", f"http://127.0.0.1:{silent.getsockname()[1]}", "--timeout", "0.01")
    assert (done.exit_code, done.stdout) == (3, "")
    assert "no answer within 0.01 s" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("nothing",),
        ("get",),
        ("get", "x"),
        ("list", "--nothing"),
        ("list", "--server", "ftp://x"),
        ("chat",),
        ("list", "--server", "http://x:port"),
        ("list", "--namespace", "a\nb"),
        ("add", "a\udcffb"),
        ("agents", "show", "\udcff"),
        ("context", "helper", "tea", "--max-tokens", "63"),
    ],
    ids=" ".join,
)
def test_wrong_usage_exits_with_2_and_prints_nothing_on_stdout(run, arguments):
    done = run(*arguments)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr


@pytest.mark.parametrize(("typed", "meant"), [("serch", "search"), ("doctr", "doctor"), ("agent", "agents")])
def test_a_mistyped_command_gets_a_suggestion(run, typed, meant):
    said = run(typed).stderr
    assert "Did you mean" in said
    assert repr(meant) in said


@pytest.mark.parametrize("arguments", [("get", "--json"), ("--json", "list", "--nothing"), ("--json", "nothing")])
def test_wrong_usage_is_json_on_request(run, arguments):
    error = json.loads(run(*arguments).stderr)["error"]
    assert error["exit_code"] == 2
    assert error["message"]


def test_a_refusal_is_reported_with_its_request_id(run):
    error = json.loads(run("get", "424242", "--json").stderr)["error"]
    assert error.pop("request_id")
    assert error == {
        "exit_code": 1,
        "message": "Memory ID 424242 not found (404, memory_not_found)",
        "status": 404,
        "code": "memory_not_found",
        "detail": "Memory ID 424242 not found",
    }


def test_a_closed_pipe_ends_a_command_silently(service, run):
    run("add", "x" * 40_000, "--namespace", "long")
    with subprocess.Popen(
        [*COMMAND, "get", "1", "--namespace", "long"],
        env=environment(SOUVENIR_URL=service.url),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        # Closed before anything is written: nobody ever reads.
        process.stdout.close()
        assert process.stderr is not None
        said = process.stderr.read()
        assert (process.wait(TIMEOUT_S), said) == (141, b"")


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_ctrl_c_exits_with_130(form):
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        subprocess.Popen(
            [*COMMAND, "list", "--server", f"http://127.0.0.1:{silent.getsockname()[1]}", *form],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        ) as process,
    ):
        connection, _ = silent.accept()
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=TIMEOUT_S)
        connection.close()
    assert (process.returncode, stdout) == (130, b"")
    assert b"Traceback" not in stderr
    if form:
        assert json.loads(stderr)["error"]["exit_code"] == 130


def on_a_terminal(arguments: list[str], typed: bytes, env: dict[str, str]) -> tuple[int, str]:
    """What a person sees who types that."""
    master, slave = pty.openpty()
    try:
        with subprocess.Popen([*COMMAND, *arguments], env=env, stdin=slave, stdout=slave, stderr=slave) as process:
            os.close(slave)
            os.write(master, typed)
            seen = b""
            while part := read_of(master):
                seen += part
            return process.wait(TIMEOUT_S), seen.decode()
    finally:
        os.close(master)


def read_of(master: int) -> bytes:
    try:
        return os.read(master, 4096)
    except OSError:  # Linux says so when the other end is closed
        return b""


@pytest.mark.parametrize(("typed", "code", "left"), [(b"n\n", 1, 1), (b"y\n", 0, 0)])
def test_deleting_asks_for_confirmation_on_a_terminal(service, answer, typed, code, left):
    namespace = f"asked-{code}"
    made = answer("add", "Shall \x1b[1mthis go?", "--namespace", namespace)["id"]
    ended, seen = on_a_terminal(
        ["delete", str(made), "--namespace", namespace], typed, environment(SOUVENIR_URL=service.url)
    )
    assert (ended, answer("list", "--namespace", namespace)["total"]) == (code, left)
    assert 'Delete "Shall \\x1b[1mthis go?"?' in seen


def test_an_import_shows_progress_on_a_terminal(service, tmp_path):
    path = tmp_path / "lines.jsonl"
    path.write_text('{"text": "One."}\n' * 3, encoding="utf-8")
    ended, seen = on_a_terminal(
        ["import", str(path), "--namespace", "bar"], b"", environment(SOUVENIR_URL=service.url, TERM="xterm")
    )
    assert ended == 0
    assert "Importing" in seen


def test_a_table_fits_a_terminal_of_80_columns(service, run):
    run("add", "word " * 100, "--source", "team/notes", "--namespace", "wide")
    ended, seen = on_a_terminal(
        ["list", "--namespace", "wide"], b"", environment(SOUVENIR_URL=service.url, COLUMNS="80", NO_COLOR="1")
    )
    assert ended == 0
    header, row, *_ = seen.splitlines()
    assert "SOURCE" in header
    assert "team/notes" in row
    assert "…" in row
    assert len(row) <= 80


def test_texts_to_copy_are_never_truncated(service, run, answer):
    name = "agent-" + "x" * 60
    session = answer("agents", "create", name)["id"] * 2
    with Souvenir(service.url) as client:
        client.messages.add(agent_name=name, role="user", content="Hello.", session_id=session, user="u" * 40)
    env = environment(SOUVENIR_URL=service.url, COLUMNS="80", NO_COLOR="1")
    ended, seen = on_a_terminal(["chat", "sessions", name], b"", env)
    assert ended == 0
    assert session in seen
    assert "u…" in seen
