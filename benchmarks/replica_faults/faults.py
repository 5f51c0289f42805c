"""The faults of the rounds: each breaks something of a running cluster for a while and repairs it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from random import Random

from benchmarks.replica_faults.cluster import Cluster
from benchmarks.replica_faults.proxy import Passage

Fault = Callable[[Cluster, Random], str]
"""Returns a description for the log."""

SHORT_S = (0.3, 2.5)
LONGER_THAN_LEASE_S = 2.0


def _waited(dice: Random) -> float:
    seconds = dice.uniform(*SHORT_S)
    time.sleep(seconds)
    return seconds


def kill_replica(cluster: Cluster, dice: Random) -> str:
    replica = dice.choice(cluster.replicas)
    replica.kill()
    seconds = _waited(dice)
    replica.start()
    return f"{replica.name} for {seconds:.1f} s"


def stop_replica(cluster: Cluster, dice: Random) -> str:
    """SIGTERM, as in an upgrade."""
    replica = dice.choice(cluster.replicas)
    replica.stop()
    replica.start()
    return replica.name


def kill_two_replicas(cluster: Cluster, dice: Random) -> str:
    first, second = dice.sample(cluster.replicas, 2)
    first.kill()
    second.kill()
    _waited(dice)
    first.start()
    second.start()
    return f"{first.name} and {second.name}"


def pause_replica(cluster: Cluster, dice: Random) -> str:
    """SIGSTOP for less than the lease."""
    return _paused(cluster, dice, dice.uniform(1.0, 6.0))


def pause_replica_longer_than_lease(cluster: Cluster, dice: Random) -> str:
    return _paused(cluster, dice, cluster.lease_s + LONGER_THAN_LEASE_S)


def _paused(cluster: Cluster, dice: Random, seconds: float) -> str:
    replica = dice.choice(cluster.replicas)
    replica.pause()
    time.sleep(seconds)
    replica.go_on()
    return f"{replica.name} for {seconds:.1f} s"


def cut_off_replica(cluster: Cluster, dice: Random) -> str:
    """Its connections to the database are reset, and new ones too."""
    return _behind_proxy(cluster, dice, Passage.CLOSED, dice.uniform(*SHORT_S))


def silence_replica(cluster: Cluster, dice: Random) -> str:
    """Nothing passes between it and the database; afterwards what was sent arrives late, or the connections break."""
    return _behind_proxy(cluster, dice, Passage.SILENT, dice.uniform(1.0, 6.0))


def silence_replica_longer_than_lease(cluster: Cluster, dice: Random) -> str:
    return _behind_proxy(cluster, dice, Passage.SILENT, cluster.lease_s + LONGER_THAN_LEASE_S)


def lose_answers(cluster: Cluster, dice: Random) -> str:
    """The database carries out what the replica sends, and its answers are lost."""
    return _behind_proxy(cluster, dice, Passage.UNANSWERED, dice.uniform(*SHORT_S))


def _behind_proxy(cluster: Cluster, dice: Random, passage: Passage, seconds: float) -> str:
    replica = dice.choice(cluster.replicas)
    replica.let(passage)
    time.sleep(seconds)
    breaks = passage is Passage.UNANSWERED or dice.random() < 0.5
    replica.let(Passage.OPEN, reset=breaks)
    return f"{replica.name} for {seconds:.1f} s{', then its connections broke' if breaks else ''}"


def end_connections(cluster: Cluster, dice: Random) -> str:
    """The server ends all connections, some times."""
    times = dice.randint(1, 4)
    for _ in range(times):
        cluster.primary.end_connections()
        time.sleep(dice.uniform(0.05, 0.5))
    return f"{times} times"


def kill_database(cluster: Cluster, dice: Random) -> str:
    cluster.primary.kill()
    seconds = _waited(dice)
    cluster.primary.start()
    return f"for {seconds:.1f} s"


def restart_database(cluster: Cluster, _: Random) -> str:
    cluster.primary.stop()
    cluster.primary.start()
    return "at once"


def kill_database_and_replica(cluster: Cluster, dice: Random) -> str:
    replica = dice.choice(cluster.replicas)
    cluster.primary.kill()
    replica.kill()
    seconds = _waited(dice)
    cluster.primary.start()
    replica.start()
    return f"and {replica.name} for {seconds:.1f} s"


def fail_over(cluster: Cluster, _: Random) -> str:
    cluster.fail_over()
    return "and the killed server became the standby"


def fail_over_during_pause(cluster: Cluster, dice: Random) -> str:
    """A replica is stopped during the failover, and goes on with connections to the former primary."""
    replica = dice.choice(cluster.replicas)
    replica.pause()
    cluster.fail_over()
    replica.go_on()
    return f"while {replica.name} was stopped"


def fail_over_to_late_standby(cluster: Cluster, _: Random) -> str:
    """The standby lacks the last second of what an asynchronous primary acknowledged: the control of the rounds."""
    cluster.replication.let(Passage.SILENT)
    time.sleep(1.0)
    cluster.fail_over()
    return "which lacks commits"


OF_REPLICAS: Mapping[str, Fault] = {
    "kill -9 of a replica": kill_replica,
    "SIGTERM of a replica": stop_replica,
    "kill -9 of two replicas": kill_two_replicas,
    "SIGSTOP of a replica, 1 to 6 s": pause_replica,
    "SIGSTOP, longer than the lease": pause_replica_longer_than_lease,
    "replica cut off from the database": cut_off_replica,
    "silence between replica and database": silence_replica,
    "silence, longer than the lease": silence_replica_longer_than_lease,
    "answers of the database lost": lose_answers,
}
OF_THE_DATABASE: Mapping[str, Fault] = {
    "connections ended by the server": end_connections,
    "kill -9 of the database": kill_database,
    "restart of the database": restart_database,
    "kill -9 of the database and a replica": kill_database_and_replica,
}
OF_THE_PRIMARY: Mapping[str, Fault] = {
    "failover to the standby": fail_over,
    "failover during a SIGSTOP": fail_over_during_pause,
}
FAULTS: Mapping[str, Fault] = {**OF_REPLICAS, **OF_THE_DATABASE, **OF_THE_PRIMARY}

LATE_STANDBY = "failover to a late standby"
CONTROLS: Mapping[str, Fault] = {LATE_STANDBY: fail_over_to_late_standby}
