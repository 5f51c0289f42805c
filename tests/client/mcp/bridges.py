"""A bridge as an editor starts it: the real program in a separate process, with lines to and from it.

It is forked from a process that has imported the SDK of MCP, which takes a bridge longer than all else that tests ask
of it. `test_real_service.py` and the shared bridge of `test_bridge.py` run the command.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from queue import Empty, Queue
from subprocess import PIPE, Popen
from typing import Any, Self

from benchmarks.service import ROOT
from tests.client.cli.entry import COMMAND, environment
from tests.forking import PipedPython

WAIT_S = 60.0
"""For a line; no test waits for that."""


class BridgeProcess:
    """Every line that it prints has to be a message."""

    def __init__(self, *arguments: str, cwd: Path = ROOT, **variables: str) -> None:
        self.process = self._begin([*COMMAND, "mcp", *arguments], environment(**variables), cwd)
        self._lines: Queue[bytes] = Queue()
        self._errors = bytearray()
        self._readers = [threading.Thread(target=read, daemon=True) for read in (self._read, self._read_errors)]
        for reader in self._readers:
            reader.start()

    def _begin(self, command: list[str], variables: dict[str, str], cwd: Path) -> PipedPython | Popen[bytes]:
        return PipedPython(command[1:], variables, cwd)

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._errors += line

    @property
    def errors(self) -> str:
        """What it said on standard error so far."""
        return self._errors.decode()

    def send_line(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def send(self, method: str, request_id: int | str | None = None, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        self.send_line(json.dumps(message if request_id is None else {**message, "id": request_id}).encode())

    def line(self) -> bytes:
        """The next line, with its end."""
        return self._lines.get(timeout=WAIT_S)

    def receive(self) -> Any:
        """The next message."""
        line = self.line()
        assert line.endswith(b"\n")
        return json.loads(line)

    def ask(self, method: str, request_id: int | str, **params: Any) -> Any:
        """Send a request, and receive its answer."""
        self.send(method, request_id, **params)
        return self.receive()

    def close(self) -> int:
        """End its input, and wait for its end."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        status = self.process.wait(WAIT_S)
        for reader in self._readers:
            reader.join(WAIT_S)
        return status

    def rest(self) -> list[Any]:
        """What it printed that nobody received."""
        found = []
        while True:
            try:
                found.append(json.loads(self._lines.get_nowait()))
            except Empty:
                return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(WAIT_S)
        for reader in self._readers:
            reader.join(WAIT_S)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            try:
                stream.close()
            except BrokenPipeError:  # what was not sent to a killed one
                continue


class CommandProcess(BridgeProcess):
    """The command itself."""

    def _begin(self, command: list[str], variables: dict[str, str], cwd: Path) -> Popen[bytes]:
        return Popen(command, env=variables, cwd=cwd, stdin=PIPE, stdout=PIPE, stderr=PIPE)
