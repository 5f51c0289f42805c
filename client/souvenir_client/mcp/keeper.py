"""Runs a service while any process holds the pipe; a separate process that bridges start.

    python -m souvenir_client.mcp.keeper PIPE LOCK PORT FOLDER COMMAND...

It exits with the service's status, or with `TAKEN` if another keeper has the lock. Invariants: the service is
terminated gracefully and not killed while it finishes acknowledged requests; a keeper that is terminated terminates the
service; the lock file contains the configured database, and no namespace is passed to the service.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

TAKEN = 75
"""`EX_TEMPFAIL` of sysexits.h: try again."""

LINGER_S = 1.0
"""An editor that restarts its programs finds the service still running."""

STOP_S = 60.0
"""Longer than the service takes to end at most."""

DATABASE_VARIABLES = ("DB_PATH", "MEMORY_SERVER_DB_PATH", "SQLITE_PATH")
"""The first that is set counts; DATA_DIR below them."""

NAMESPACE_VARIABLES = ("MCP_NAMESPACE", "USER_ID")
"""Each bridge says its own, so the first one's is not the service's."""


def main(arguments: Sequence[str]) -> int:
    pipe, lock, port, folder, *command = arguments
    with Path(lock).open("a", encoding="utf-8") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return TAKEN
        held.truncate(0)
        held.write(named_database(os.environ) or "")
        held.flush()
        holders = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
        shared = {name: value for name, value in os.environ.items() if name.upper() not in NAMESPACE_VARIABLES}
        environment = {**shared, "HOST": "127.0.0.1", "PORT": port}
        with subprocess.Popen(  # noqa: S603 - the folder's own program, which the bridge was started with
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL
        ) as service:
            signal.signal(signal.SIGTERM, lambda *_: service.terminate())
            threading.Thread(target=_end_when_nobody_holds, args=(holders, service), daemon=True).start()
            status = service.wait()
        return status if status >= 0 else 1


def named_database(variables: Mapping[str, str]) -> str | None:
    """The database's file that an environment names to the service; None if it leaves that to the service."""
    for name in DATABASE_VARIABLES:
        if path := variables.get(name, "").strip():
            return os.path.normpath(Path(path).expanduser())
    folder = variables.get("DATA_DIR", "").strip()
    return os.path.normpath(Path(folder).expanduser() / "souvenir.db") if folder else None


def _end_when_nobody_holds(holders: int, service: subprocess.Popen[bytes]) -> None:
    while not _nobody_holds(holders):
        os.set_blocking(holders, True)
        # Nobody writes: it returns when the last one who held the other end is gone.
        os.read(holders, 1)
        time.sleep(LINGER_S)
    service.terminate()
    try:
        service.wait(STOP_S)
    except subprocess.TimeoutExpired:
        service.kill()


def _nobody_holds(holders: int) -> bool:
    os.set_blocking(holders, False)
    try:
        return not os.read(holders, 1)
    except BlockingIOError:
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
