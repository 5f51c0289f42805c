"""Permanent clients in a separate process: searchers at a steady rate, and a reader of the metrics.

A search is timed from the moment that it was due, so that one that waits behind a slow one is as late as it is.
"""

from __future__ import annotations

import http.client
import multiprocessing
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection
from threading import Event, Thread

from benchmarks.load.sentences import questions
from benchmarks.service import Client

SEARCHERS = 2
OK = 200
SAMPLE_S = 1.0
STOP_TIMEOUT_S = 60.0
_RESIDENT = re.compile(r"^process_resident_memory_bytes (\S+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Search:
    """:param due_at: On the machine's monotonic clock, which all processes share."""

    due_at: float
    seconds: float
    failure: str | None = None


@dataclass(slots=True)
class Seen:
    """:param resident: The service's resident bytes, each with when."""

    searches: list[Search] = field(default_factory=list)
    resident: list[tuple[float, float]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Block:
    """A time in which one thing was the case."""

    name: str
    begin: float
    end: float

    def searches(self, seen: Seen) -> Sequence[Search]:
        return [one for one in seen.searches if self.begin <= one.due_at < self.end]

    def resident(self, seen: Seen) -> Sequence[float]:
        return [taken for at, taken in seen.resident if self.begin <= at < self.end]


@contextmanager
def watching(port: int, rate: float) -> Iterator[Seen]:
    """Searches and samples until the block ends; then what was seen is there.

    :param rate: Searches a second, of all searchers together.
    """
    processes = multiprocessing.get_context("spawn")
    ours, theirs = processes.Pipe()
    process = processes.Process(target=_watch, args=(port, rate, theirs))
    process.start()
    ours.recv()
    seen = Seen()
    try:
        yield seen
    finally:
        ours.send(None)
        if ours.poll(STOP_TIMEOUT_S):
            got = ours.recv()
            seen.searches, seen.resident, seen.failures = got.searches, got.resident, got.failures
        else:
            seen.failures.append("the searchers did not end")
        process.join(STOP_TIMEOUT_S)


def _watch(port: int, rate: float, channel: Connection) -> None:
    seen, stopped = Seen(), Event()
    runs = [partial(_search, port, number, SEARCHERS / rate, seen, stopped) for number in range(SEARCHERS)]
    runs.append(partial(_sample, port, seen, stopped))
    jobs = [Thread(target=_noting, args=(run, seen)) for run in runs]
    for job in jobs:
        job.start()
    channel.send(None)
    channel.recv()
    stopped.set()
    for job in jobs:
        job.join()
    channel.send(seen)


def _noting(run: Callable[[], None], seen: Seen) -> None:
    try:
        run()
    except Exception as error:  # noqa: BLE001 - a thread's boundary: the report tells it
        seen.failures.append(repr(error))


def _search(port: int, number: int, interval_s: float, seen: Seen, stopped: Event) -> None:
    client, asked = Client(port), questions(seed=number)
    due = time.monotonic() + interval_s * number / SEARCHERS
    while not stopped.wait(max(0.0, due - time.monotonic())):
        status, answer = client.call("POST", "/search", {"query": next(asked), "k": 10})
        failure = None if status == OK and answer["results"] else f"a search was answered {status}"
        seen.searches.append(Search(due, time.monotonic() - due, failure))
        due += interval_s
    client.close()


def _sample(port: int, seen: Seen, stopped: Event) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=STOP_TIMEOUT_S)
    while not stopped.wait(SAMPLE_S):
        connection.request("GET", "/metrics", headers={"Accept": "text/plain"})
        found = _RESIDENT.search(connection.getresponse().read().decode())
        if found is not None:
            seen.resident.append((time.monotonic(), float(found[1])))
    connection.close()
