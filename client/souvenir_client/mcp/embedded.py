"""The service on this machine, for bridges without an address: it is found at its port, or started once.

Every bridge holds a named pipe while it runs. A keeper (`souvenir_client.mcp.keeper`), a separate process, runs the
service while any process holds that pipe. An editor that is closed or killed does not affect the others, and the last
one stops the service. The keeper's lock permits one service a port.

Invariants: no request is sent to a program that has not identified itself as Souvenir, nor to a service that was
started for another database than the configured one; every wait is bounded.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import httpx

from souvenir_client.calls import Address
from souvenir_client.errors import SouvenirError
from souvenir_client.mcp.keeper import TAKEN

FAMILY = "memories"
"""The name of the service in `/health`."""

START_S = 90.0
"""The first start loads a model; on a slow machine, while it does other things, that takes its time."""

LOOK_S = 5.0
POLL_S = 0.1
TAKEN_POLL_S = 0.5
"""Another keeper has the lock: it starts its service, or still ends it."""

MAX_LOG_BYTES = 8 * 1024 * 1024
MAX_REASON_CHARS = 500


class NotStarted(SouvenirError):
    """There is no service, and none can be started."""


class NotOurs(SouvenirError):
    """Something else has the port."""

    def __init__(self, url: str) -> None:
        super().__init__(
            f"The program at {url} is not Souvenir: set --server or SOUVENIR_URL to the service, or --port to a free "
            "port."
        )


class OtherDatabase(SouvenirError):
    """The service that is shared has another database than this program names."""

    def __init__(self, url: str, named: str, used: str) -> None:
        own = used or "the database in its own settings"
        super().__init__(
            f"The service at {url} uses {own}, and this program sets {named}: use another --port, or set the same "
            "database in every program."
        )


@dataclass(frozen=True, slots=True)
class Program:
    """The program that runs the service: a command and its working directory."""

    folder: Path
    command: list[str]


class _Seen(Enum):
    NOBODY = "nobody answers"
    STARTING = "it is not ready yet"
    READY = "it can be asked"


class Embedded:
    """:param address: On this machine.

    :param state: Folder of the pipe, the lock and the log.
    :param program: The program to start if no service runs; may raise NotStarted.
    :param http: Closed by its owner.
    :param database: The required database; any if None.
    """

    def __init__(
        self,
        address: Address,
        port: int,
        state: Path,
        program: Callable[[], Program],
        http: httpx.AsyncClient,
        database: str | None = None,
    ) -> None:
        self.address = address
        self._port, self._state, self._program, self._http = port, state, program, http
        self._database = database
        self._changing = asyncio.Lock()
        self._is_found = False
        self._failures = 0
        self._failure: SouvenirError | None = None
        self._pipe: int | None = None

    async def ready(self) -> None:
        """Callers that waited for the same attempt share its failure; the next request tries again.

        :raises NotOurs: If another program uses the port.
        :raises NotStarted: If the service cannot be started, or is not ready in time.
        :raises OtherDatabase: If it was started for another database.
        """
        before = self._failures
        async with self._changing:
            if self._is_found:
                return
            if self._failure is not None and self._failures > before:
                raise self._failure
            try:
                self._hold()
                await self._find()
                self._check_database()
            except SouvenirError as error:
                self._failures += 1
                self._failure = error
                raise
            self._is_found = True

    def lost(self) -> None:
        self._is_found = False

    @property
    def log_path(self) -> Path:
        return self._file("log")

    def _file(self, kind: str) -> Path:
        return self._state / f"embedded-{self._port}.{kind}"

    def _hold(self) -> None:
        """Take part in what keeps the service running, until this process ends."""
        if self._pipe is not None:
            return
        try:
            self._state.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._file("pipe").is_fifo():
                os.mkfifo(self._file("pipe"), 0o600)
        except FileExistsError:  # another bridge was quicker
            pass
        except OSError as error:
            raise NotStarted(f"{self._state} cannot be used ({error.strerror}): make it writable.") from error
        # For both ways, so that it opens whether or not there is a keeper.
        self._pipe = os.open(self._file("pipe"), os.O_RDWR | os.O_NONBLOCK)

    async def _find(self) -> None:
        end_s = time.monotonic() + START_S
        keeper: subprocess.Popen[bytes] | None = None
        while (seen := await self._look()) is not _Seen.READY:
            if time.monotonic() > end_s:
                raise NotStarted(f"The service was not ready within {START_S:g} s: {self._why()}")
            pause_s = POLL_S
            if seen is _Seen.NOBODY and (keeper is None or keeper.poll() is not None):
                if keeper is not None and keeper.returncode not in (0, TAKEN):
                    raise NotStarted(f"The service did not start: {self._why()}")
                pause_s = POLL_S if keeper is None else TAKEN_POLL_S
                keeper = self._start(self._program())
            await asyncio.sleep(pause_s)

    def _check_database(self) -> None:
        """A service without a keeper was started by the user, who configured its database."""
        if self._database is None or not self._file("lock").exists():
            return
        with self._file("lock").open(encoding="utf-8") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:  # a keeper runs it
                used = lock.read()
                if used != self._database:
                    raise OtherDatabase(self.address.url, self._database, used) from None

    async def _look(self) -> _Seen:
        """:raises NotOurs: If what answers is no Souvenir."""
        try:
            answered = await self._http.get(f"{self.address.url}/health", timeout=LOOK_S)
            if not answered.is_success or _object_in(answered).get("service") != FAMILY:
                raise NotOurs(self.address.url)
            readiness = await self._http.get(f"{self.address.url}/health/ready", timeout=LOOK_S)
        except (httpx.ConnectError, httpx.ConnectTimeout):
            return _Seen.NOBODY
        except httpx.RemoteProtocolError as error:
            raise NotOurs(self.address.url) from error
        except httpx.TransportError:
            return _Seen.STARTING
        detail = _object_in(readiness).get("detail")
        is_starting = isinstance(detail, dict) and detail.get("status") == "starting"
        return _Seen.STARTING if is_starting else _Seen.READY

    def _start(self, program: Program) -> subprocess.Popen[bytes]:
        """A keeper in a session of its own, which a signal to the editor's programs does not reach."""
        size = self.log_path.stat().st_size if self.log_path.exists() else 0
        arguments = [self._file("pipe"), self._file("lock"), self._port, program.folder, *program.command]
        with self.log_path.open("ab" if size < MAX_LOG_BYTES else "wb") as log:
            os.fchmod(log.fileno(), 0o600)
            return subprocess.Popen(  # noqa: S603 - a program of ours, with the folder that the caller named
                [sys.executable, "-P", "-m", "souvenir_client.mcp.keeper", *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
            )

    def _why(self) -> str:
        """The last line of the log."""
        lines = [
            line for line in self.log_path.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()
        ]
        said = f"{lines[-1].strip()[:MAX_REASON_CHARS]} " if lines else ""
        return f"{said}(see {self.log_path})."


def _object_in(answered: httpx.Response) -> dict[str, Any]:
    try:
        value = answered.json()
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
