"""The real service as a child process on a free loopback port, for measurements from the far side of HTTP."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar, Protocol

from souvenir.core.errors import SouvenirError
from souvenir.core.settings import Settings
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.reembedding import chosen_model

ROOT = Path(__file__).resolve().parent.parent
START_TIMEOUT_S = 60.0
_MCP_HEADERS = {"Accept": "application/json, text/event-stream"}


class ServiceFailed(Exception):
    """The service did not start, or answered what it must not answer."""


class Process(Protocol):
    """The part of `subprocess.Popen` that a service needs."""

    pid: int

    def poll(self) -> int | None: ...

    def wait(self, timeout: float | None = None) -> int: ...

    def send_signal(self, number: signal.Signals) -> None: ...


StartProcess = Callable[[Sequence[str], Mapping[str, str], Path], Process]


def start_python(arguments: Sequence[str], environment: Mapping[str, str], log_path: Path) -> Process:
    """Start `python ARGUMENTS` in the checkout; its output is appended to a file."""
    with log_path.open("ab") as output:
        return subprocess.Popen([sys.executable, *arguments], cwd=ROOT, env=environment, stdout=output, stderr=output)


class Service:
    """`python app.py` over one data folder; started, killed and started again on the same port."""

    start_process: ClassVar[StartProcess] = start_python

    def __init__(self, data_dir: Path, *, command: Sequence[str] = ("app.py",), **environment: str) -> None:
        """:param command: Arguments of Python. :param environment: Settings."""
        self.data_dir = data_dir
        self._command = command
        self.port = free_port()
        self._environment = {
            **os.environ,
            "DATA_DIR": str(data_dir),
            "PORT": str(self.port),
            "LOG_LEVEL": "WARNING",
            **environment,
        }
        self._process: Process | None = None
        self.log_path = data_dir.parent / f"{data_dir.name}.log"

    @property
    def running(self) -> bool:
        return self._process is not None

    @property
    def resident_bytes(self) -> int:
        """Resident memory of the process, as Linux counts it; 0 once it has ended."""
        for line in Path(f"/proc/{self._running().pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) * 1024
        return 0

    @property
    def cpu_s(self) -> float:
        """Processor seconds of the process so far, as Linux counts them."""
        fields = Path(f"/proc/{self._running().pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def start(self) -> float:
        """Returns the seconds until it was ready."""
        begin = time.monotonic()
        self._process = type(self).start_process(self._command, self._environment, self.log_path)
        while time.monotonic() - begin < START_TIMEOUT_S:
            if (status := self._process.poll()) is not None:
                raise ServiceFailed(f"the service ended with {status}; see {self.log_path}")
            if self._is_ready():
                return time.monotonic() - begin
            time.sleep(0.02)
        raise ServiceFailed(f"the service was not ready in {START_TIMEOUT_S:.0f} s; see {self.log_path}")

    def kill(self) -> None:
        """SIGKILL: no handler, no flush, no goodbye."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """SIGTERM: what an orderly stop sends. Returns the status that it ended with."""
        return self._end(signal.SIGTERM)

    def wait(self) -> int:
        """Wait until it has ended by itself, and return its status."""
        status = self._running().wait(timeout=START_TIMEOUT_S)
        self._process = None
        return status

    def check(self) -> list[str]:
        """What `python app.py check` finds in the folder while no service runs on it."""
        settings = Settings(data_dir=self.data_dir)
        try:
            with closing(MemoryEngine.open(settings, chosen_model(settings)[0])) as engine:
                engine.warm_up()
                return list(engine.check())
        except SouvenirError as error:
            return [error.message]

    def client(self, key: str | None = None) -> Client:
        return Client(self.port, key=key)

    def _running(self) -> Process:
        if self._process is None:
            raise ServiceFailed("the service was not started")
        return self._process

    def _is_ready(self) -> bool:
        client = self.client()
        try:
            return client.call("GET", "/health/ready")[0] == 200
        except OSError:
            return False
        finally:
            client.close()

    def _end(self, with_signal: signal.Signals) -> int:
        process = self._running()
        process.send_signal(with_signal)
        status = process.wait(timeout=START_TIMEOUT_S)
        self._process = None
        return status


class Client:
    """One keep-alive connection; not for more than one thread."""

    def __init__(self, port: int, timeout_s: float = 60.0, key: str | None = None) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout_s)
        self._headers = {} if key is None else {"X-API-Key": key}

    def call(
        self, method: str, path: str, body: Any = None, *, namespace: str | None = None, once: str | None = None
    ) -> tuple[int, Any]:
        """Status and parsed answer.

        :param once: The Idempotency-Key.
        :raises OSError: If no whole answer came; the request may or may not have been carried out.
        """
        sent = {"X-Namespace": namespace, "Idempotency-Key": once}
        headers = {name: value for name, value in sent.items() if value is not None}
        return self._send(method, path, None if body is None else json.dumps(body), "application/json", headers)

    def call_tool(self, name: str, arguments: Mapping[str, Any], path: str = "/mcp") -> Any:
        """What a tool of MCP answers.

        :raises ServiceFailed: If the answer is an error.
        :raises OSError: As `call`.
        """
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        status, answer = self._send("POST", path, json.dumps(message), "application/json", _MCP_HEADERS)
        result = answer.get("result", {"isError": True})
        if result["isError"]:
            raise ServiceFailed(f"{name} was answered {status}: {answer}")
        return result["structuredContent"]

    def send_lines(self, path: str, lines: str) -> tuple[int, Any]:
        """Post NDJSON; as `call`."""
        return self._send("POST", path, lines.encode(), "application/x-ndjson")

    def _send(
        self,
        method: str,
        path: str,
        body: str | bytes | None,
        content_type: str,
        further: Mapping[str, str] = MappingProxyType({}),
    ) -> tuple[int, Any]:
        headers = {**self._headers, **further, **({} if body is None else {"Content-Type": content_type})}
        try:
            self._connection.request(method, path, body, headers)
            response = self._connection.getresponse()
            return response.status, json.loads(response.read())
        except (http.client.HTTPException, ValueError) as error:
            raise ConnectionError(str(error)) from error

    def text(self, method: str, path: str, *, namespace: str | None = None) -> str:
        """The body of an answer that is plain text."""
        headers = {**self._headers, "Accept": "text/plain, */*"}
        headers |= {} if namespace is None else {"X-Namespace": namespace}
        self._connection.request(method, path, headers=headers)
        return self._connection.getresponse().read().decode()

    def close(self) -> None:
        self._connection.close()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
