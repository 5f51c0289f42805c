"""Replicas of the service as processes over a PostgreSQL server, each behind its own proxies, and maybe a standby."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from enum import Enum
from http import HTTPStatus
from pathlib import Path
from types import MappingProxyType

from benchmarks.replica_faults.postgres import PostgresServer
from benchmarks.replica_faults.proxy import Passage, Proxy
from benchmarks.service import Client, Service, ServiceFailed
from souvenir.store.postgres.replicas import LEASE_S

REPLICAS = 3
FAKE = ("-m", "benchmarks.replica_faults.fake_service")
READY_TIMEOUT_S = 60.0


class Replica(Service):
    """A process of the service that can also be stopped and go on. Each server of the database has its proxy."""

    def __init__(
        self, data_dir: Path, servers: Sequence[PostgresServer], command: Sequence[str], **environment: str
    ) -> None:
        self.proxies = [Proxy(server.port) for server in servers]
        hosts = ",".join(f"127.0.0.1:{proxy.port}" for proxy in self.proxies)
        address = f"postgresql://postgres@{hosts}/postgres"
        super().__init__(data_dir, command=command, DATABASE_URL=address, **environment)
        self.name = data_dir.name

    def pause(self) -> None:
        """SIGSTOP."""
        self._running().send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """SIGCONT."""
        self._running().send_signal(signal.SIGCONT)

    def let(self, passage: Passage, *, reset: bool = False) -> None:
        """Change what passes between the replica and the database."""
        for proxy in self.proxies:
            proxy.let(passage, reset=reset)

    def wait_until_ready(self) -> None:
        """:raises ServiceFailed: If it does not become ready."""
        deadline = time.monotonic() + READY_TIMEOUT_S
        answer: object = None
        while time.monotonic() < deadline:
            client = Client(self.port, timeout_s=5.0)
            try:
                status, answer = client.call("GET", "/health/ready")
                if status == HTTPStatus.OK:
                    return
            except OSError as error:
                answer = error
            finally:
                client.close()
            time.sleep(0.05)
        raise ServiceFailed(f"{self.name} is not ready {READY_TIMEOUT_S:.0f} s after a fault: {answer}")


class Standby(Enum):
    """No standby, an asynchronous one, or a synchronous one."""

    NONE = "none"
    ASYNCHRONOUS = "asynchronous"
    SYNCHRONOUS = "synchronous"


class Cluster:
    """Three replicas over one database, maybe with a standby, which receives commits through `replication`."""

    def __init__(
        self,
        folder: Path,
        standby: Standby,
        command: Sequence[str] = FAKE,
        settings: Mapping[str, str] = MappingProxyType({}),
        lease_s: float = LEASE_S,
    ) -> None:
        """:param lease_s: That of the replicas; only the command `FAKE` can have another one."""
        self.lease_s = lease_s
        if lease_s != LEASE_S:
            command = (*command, "--lease-s", str(lease_s))
        waits = standby is Standby.SYNCHRONOUS
        self.primary = PostgresServer(folder / "database-1", waits_for_standby=waits)
        self.standby = None
        if standby is not Standby.NONE:
            self.standby = PostgresServer(folder / "database-2", waits_for_standby=waits)
        self.replication = Proxy(self.primary.port)
        self.primary.create()
        servers = [self.primary, *([] if self.standby is None else [self.standby])]
        self.replicas = [
            Replica(folder / f"replica-{number}", servers, command, **settings) for number in range(1, REPLICAS + 1)
        ]

    def start(self) -> None:
        self.primary.start()
        if self.standby is not None:
            self.standby.follow(self.replication.port)
            self.primary.wait_for_standby()
        with ThreadPoolExecutor(len(self.replicas)) as threads:
            list(threads.map(Replica.start, self.replicas))

    def fail_over(self) -> None:
        """Kill the primary and promote the standby; the killed server becomes the standby of the new primary."""
        if self.standby is None:
            raise ServiceFailed("there is no standby")
        self.primary.kill()
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary
        self.standby.follow(self.primary.port)
        self.primary.wait_for_standby()

    def wait_until_ready(self) -> None:
        for replica in self.replicas:
            replica.wait_until_ready()

    def close(self) -> None:
        for replica in self.replicas:
            if replica.running:
                replica.kill()
            for proxy in replica.proxies:
                proxy.close()
        self.replication.close()
        for server in (self.standby, self.primary):
            if server is not None:
                server.close()


@contextmanager
def running(cluster: Cluster) -> Iterator[Cluster]:
    """Start a cluster, and end everything of it at the end."""
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()
