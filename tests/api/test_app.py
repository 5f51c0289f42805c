"""The program with the real model: import, start, check, restore and stop."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

import app as program
from benchmarks.service import Process, StartProcess, start_python
from souvenir import VERSION
from souvenir.store.sqlite.locks import lock_folder
from tests.forking import ForkedPython

pytestmark = pytest.mark.sqlite_only(reason="starts the program on the file of a folder")

ROOT = Path(__file__).resolve().parent.parent.parent
PROGRAM = [sys.executable, "app.py"]
START_TIMEOUT_S = 60


@pytest.fixture
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DATA_DIR", str(tmp_path / "data"))
    return tmp_path / "data"


@contextmanager
def served(
    data_dir: Path, start: StartProcess = start_python, **settings: str
) -> Iterator[tuple[httpx.Client, Process, list[str]]]:
    """A client of `python app.py` on a free port, the process, and what it has written so far.

    :param start: `ForkedPython` where the start of Python is not what a test is about: it takes seconds.
    """
    environment = {**os.environ, "DATA_DIR": str(data_dir), "PORT": "0", "LOG_FORMAT": "json", **settings}
    log_path = data_dir.parent / f"{data_dir.name}.log"
    log_path.touch()
    written: list[str] = []
    with log_path.open(encoding="utf-8") as log:
        log.seek(0, os.SEEK_END)
        process = start(["app.py"], environment, log_path)
        try:
            while not (port := re.search(r"running on http://\S+?:(\d+) .*\n", "".join(written))):
                if process.poll() is not None:
                    pytest.fail("".join([*written, *log]))
                time.sleep(0.02)
                written += log.readlines()
            loopback = "[::1]" if settings.get("HOST") == "::" else "127.0.0.1"
            address = f"http://{loopback}:{port[1]}"
            with httpx.Client(base_url=address, timeout=START_TIMEOUT_S, trust_env=False) as client:
                yield client, process, written
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
            process.wait()
            written += log.readlines()


def stop(process: Process) -> int:
    process.send_signal(signal.SIGTERM)
    return process.wait(timeout=START_TIMEOUT_S)


def test_importing_and_making_the_application_opens_nothing(data_dir: Path):
    code = "import app; app.create_app(); app.app"
    environment = {**os.environ, "DATA_DIR": str(data_dir)}
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True, timeout=START_TIMEOUT_S)
    assert not data_dir.exists()


def test_a_module_has_no_undeclared_attributes():
    with pytest.raises(AttributeError, match="nothing_like_this"):
        _ = program.nothing_like_this


@pytest.mark.parametrize("command", [[], ["serve"], ["check"]])
def test_a_database_that_cannot_be_read_is_one_sentence_and_exit_code_1(data_dir: Path, capsys, command):
    data_dir.mkdir()
    (data_dir / "souvenir.db").write_bytes(b"this is no database" * 1000)
    assert program.main(command) == 1
    written = capsys.readouterr()
    [sentence] = written.err.splitlines()
    assert str(data_dir) in sentence
    assert written.out == ""


def test_a_folder_that_another_process_uses_is_refused(data_dir: Path, capsys):
    with lock_folder(data_dir):
        assert program.main([]) == 1
    assert "Another process uses" in capsys.readouterr().err


def test_a_setting_that_cannot_be_used_is_named_and_not_shown(data_dir: Path, capsys, monkeypatch):
    monkeypatch.setenv("PORT", "secret-port")
    monkeypatch.setenv("MAX_BACKUPS", "0")
    assert program.main([]) == 2
    written = capsys.readouterr().err
    assert written.count("\n") == 2
    assert "The setting PORT cannot be used" in written
    assert "MAX_BACKUPS" in written
    assert "secret-port" not in written


def test_check_and_restore_work_on_a_stopped_service(data_dir: Path, capsys):
    with served(data_dir, ForkedPython) as (client, process, _):
        client.post("/memory/add", json={"text": "red apple", "source": "s"}).raise_for_status()
        name = client.post("/snapshots").json()["snapshot"]
        stop(process)
    assert program.main(["check"]) == 0
    assert "is sound" in capsys.readouterr().out
    (data_dir / "souvenir.db").write_bytes(b"damaged" * 1000)
    assert program.main(["restore", "no-such-backup"]) == 1
    assert "no-such-backup" in capsys.readouterr().err
    assert program.main(["restore", name]) == 0
    assert capsys.readouterr().out.splitlines()[0].startswith(f"Restored {name}")
    with served(data_dir, ForkedPython) as (client, _, _):
        assert client.get("/memory/1").json()["text"] == "red apple"
        found = client.post("/search", json={"query": "fruit"})
        assert found.status_code == 200, found.text
        assert found.json()["results"][0]["id"] == 1


def test_a_served_request_goes_through_the_real_server(data_dir: Path):
    with served(data_dir, API_KEY="k-1") as (client, process, written):
        assert client.get("/health").json() == {"status": "ok", "service": "memories", "version": VERSION}
        assert client.get("/stats").status_code == 401
        client.headers["X-API-Key"] = "k-1"
        response = client.post("/memory/add", json={"text": "red apple", "source": "secret/source"})
        assert response.status_code == 200
        assert "server" not in response.headers
        assert client.get("/memories?source=secret/source").json()["total"] == 1
        assert client.get("/memories", headers={b"X-Namespace": b"\xff\xfe"}).status_code == 422
        parts = (b"x" * 1_000_000 for _ in range(40))
        assert (
            client.post("/memory/add", content=parts, headers={"Content-Type": "application/json"}).status_code == 413
        )
        assert client.get("/health").status_code == 200
        assert stop(process) in {0, -signal.SIGTERM}
    log = "".join(written)
    assert '"route": "/memory/add"' in log
    assert "Traceback" not in log
    for secret in ("red apple", "secret/source", "k-1"):
        assert secret not in log


def test_a_second_service_on_a_taken_port_stops_and_keeps_its_data_sound(data_dir: Path, capsys):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        environment = {**os.environ, "DATA_DIR": str(data_dir), "PORT": str(taken.getsockname()[1])}
        process = subprocess.run(
            PROGRAM, cwd=ROOT, env=environment, check=False, capture_output=True, text=True, timeout=START_TIMEOUT_S
        )
    assert process.returncode != 0
    assert "address already in use" in process.stderr
    assert "Traceback" not in process.stderr
    assert program.main(["check"]) == 0
