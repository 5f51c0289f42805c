"""serve replaces its process: by which program, in which folder, with signals and exit status passed on."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.client.cli.entry import COMMAND, TIMEOUT_S, environment, souvenir

PROGRAM = """#!/bin/sh
trap 'exit 7' TERM
echo "$PWD|$*|$LOG_FORMAT|$$"
[ "$HANGS" ] && while :; do sleep 0.01; done
exit 5
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder as the service's is, whose Python says how it was called."""
    folder = tmp_path / "service"
    (folder / "souvenir").mkdir(parents=True)
    (folder / "app.py").touch()
    return folder


def give(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(PROGRAM, encoding="utf-8")
    path.chmod(0o755)


def test_serve_runs_the_environment_of_the_folder_in_it(home, tmp_path):
    give(home / ".venv" / "bin" / "python")
    done = souvenir("serve", "--home", "service", cwd=tmp_path)
    assert done.returncode == 5
    assert done.stdout.startswith(f"{home}|app.py||")


@pytest.mark.parametrize("where", ["", "souvenir"])
def test_serve_finds_the_folder_from_a_subfolder(home, where):
    give(home / ".venv" / "bin" / "python")
    assert souvenir("serve", cwd=home / where).stdout.startswith(f"{home}|")


def test_the_variable_names_the_folder_and_json_logs_in_json(home, tmp_path):
    give(home / ".venv" / "bin" / "python")
    done = souvenir("serve", "--json", cwd=tmp_path, SOUVENIR_HOME=str(home))
    assert done.stdout.startswith(f"{home}|app.py|json|")


def test_without_an_environment_serve_uses_uv(home, tmp_path):
    give(tmp_path / "bin" / "uv")
    done = souvenir("serve", cwd=home, PATH=f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    assert done.stdout.startswith(f"{home}|run app.py|")


def test_a_signal_reaches_the_service_and_its_status_comes_back(home):
    give(home / ".venv" / "bin" / "python")
    with subprocess.Popen(
        [*COMMAND, "serve"], cwd=home, env=environment(HANGS="1"), stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        pid = process.stdout.readline().rstrip().rpartition("|")[2]
        assert pid == str(process.pid)
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_S) == 7


def test_without_an_environment_or_uv_serve_says_what_to_do(run, home, monkeypatch):
    monkeypatch.setenv("PATH", "")
    done = run("serve", "--home", str(home))
    assert done.exit_code == 2
    assert "make run" in done.stderr
    assert "docker compose up" in done.stderr


def test_without_a_service_folder_serve_says_how_to_name_it(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    here = run("serve")
    named = run("serve", "--home", str(tmp_path))
    assert (here.exit_code, named.exit_code) == (2, 2)
    assert "SOUVENIR_HOME" in here.stderr
    assert str(tmp_path) in named.stderr
