"""Starts Python programs of tests by forking a process that has imported the application.

`python app.py` takes seconds to import it and to declare its routes, and the tests start it some hundred times. Tests
of the start itself (tests/api/test_app.py, tests/access/test_first_key.py) run the command.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.service import ROOT

CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(["app", "tests.fake_embedder", "tests.declared_routes"])


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


def _run(arguments: list[str], environment: dict[str, str], log_path: str) -> None:
    output = os.open(log_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(ROOT)
    run_program(arguments)


def run_program(arguments: list[str]) -> None:
    """Do what `python ARGUMENTS` does, in this process."""
    if arguments[0] == "-m":
        sys.argv = arguments[1:]
        runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    else:
        sys.argv = arguments
        runpy.run_path(arguments[0], run_name="__main__")
