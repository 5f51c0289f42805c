"""Starts Python programs of tests by forking a process that has imported the application.

`python app.py` takes seconds to import it and to declare its routes, and the tests start it some hundred times. Tests
of the start itself (some in tests/api/test_app.py and tests/access/test_first_key.py) run the command.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from io import BufferedWriter, FileIO, TextIOWrapper
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO

from benchmarks.service import ROOT
from tests.postgres_databases import follow_environment

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["app", "tests.fake_embedder", "tests.forking", "tests.killing", "tests.started_once"])


class ForkedPython:
    """`python ARGUMENTS` as a fork, with the part of `subprocess.Popen` that a service needs."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str], log_path: Path) -> None:
        """:param arguments: A file of the checkout or `-m MODULE`, and its arguments."""
        self._process = CONTEXT.Process(target=_run, args=(list(arguments), dict(environment), str(log_path)))
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("a forked process", timeout or 0.0)
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)


class PipedPython(ForkedPython):
    """The same with pipes to its standard streams."""

    def __init__(self, arguments: Sequence[str], environment: Mapping[str, str], folder: Path) -> None:
        (its_input, stdin), (stdout, its_output), (stderr, its_errors) = (os.pipe() for _ in range(3))
        ends = [
            Connection(its_input, writable=False),
            *(Connection(end, readable=False) for end in (its_output, its_errors)),
        ]
        self._process = CONTEXT.Process(target=_run_piped, args=(list(arguments), dict(environment), str(folder), ends))
        self._process.start()
        for end in ends:
            end.close()
        assert self._process.pid is not None
        self.pid = self._process.pid
        self.stdin: IO[bytes] = os.fdopen(stdin, "wb")
        self.stdout: IO[bytes] = os.fdopen(stdout, "rb")
        self.stderr: IO[bytes] = os.fdopen(stderr, "rb")

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def completed(arguments: Sequence[str], environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    """Run `python ARGUMENTS` as a fork; return its output and its exit status."""
    with tempfile.TemporaryDirectory(prefix="souvenir-test-") as folder:
        paths = [Path(folder) / name for name in ("output", "errors")]
        process = CONTEXT.Process(target=_run, args=(list(arguments), dict(environment), *map(str, paths)))
        process.start()
        process.join()
        output, errors = (path.read_text(encoding="utf-8") for path in paths)
        assert process.exitcode is not None
        return subprocess.CompletedProcess(arguments, process.exitcode, output, errors)


def _run(arguments: list[str], environment: dict[str, str], log_path: str, errors_path: str = "") -> None:
    for stream, path in ((1, log_path), (2, errors_path or log_path)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), stream)
    _run_in(str(ROOT), arguments, environment)


def _run_piped(arguments: list[str], environment: dict[str, str], folder: str, ends: list[Connection]) -> None:
    for stream, end in enumerate(ends):
        os.dup2(end.fileno(), stream)
        end.close()
    sys.stdout, sys.stderr = (TextIOWrapper(BufferedWriter(FileIO(stream, "w", closefd=False))) for stream in (1, 2))
    _run_in(folder, arguments, environment)


def _run_in(folder: str, arguments: list[str], environment: dict[str, str]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    run_program(arguments)


def run_program(arguments: list[str]) -> None:
    """Do what `python ARGUMENTS` does, in this process."""
    follow_environment()
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")
