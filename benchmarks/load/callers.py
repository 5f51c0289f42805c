"""The callers: searchers and a writer as threads of one process, and a probe of /health in another.

The probe has a process of its own, so that what it measures is the service's delay and not its fellow callers'.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.load.sentences import memories, questions
from benchmarks.service import Client, ServiceFailed

SEARCHERS = 8
SEARCHES_MAX = 20_000
PROBE_INTERVAL_S = 0.02
SOURCE = "benchmark/load"
OK, OVERLOADED = 200, 429


@dataclass(slots=True)
class Traffic:
    """What the callers of one process saw. `acknowledged` maps the id of every add that was answered to its text."""

    search_s: list[float] = field(default_factory=list)
    add_s: list[float] = field(default_factory=list)
    refused: int = 0
    acknowledged: dict[int, str] = field(default_factory=dict)


def generate(port: int, seconds: float, channel: Connection) -> None:
    """Search from `SEARCHERS` threads and add from one, each as fast as it is answered; send a `Traffic`."""
    traffic = Traffic()
    until = time.perf_counter() + seconds
    failures: list[BaseException] = []
    searchers = [_searching(port, questions(seed), until, traffic) for seed in range(SEARCHERS)]
    callers = [
        threading.Thread(target=_noting, args=(run, failures)) for run in (*searchers, _adding(port, until, traffic))
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    channel.send(failures[0] if failures else traffic)


def probe_health(port: int, seconds: float) -> list[float]:
    """Seconds that each question took whether the service lives, asked at a steady pace."""
    client, durations = Client(port), []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        durations.append(_timed(client, "GET", "/health", None)[0])
        time.sleep(max(0.0, PROBE_INTERVAL_S - durations[-1]))
    client.close()
    return durations


def _searching(port: int, texts: Iterator[str], until: float, traffic: Traffic) -> Callable[[], None]:
    def run() -> None:
        client = Client(port)
        while time.perf_counter() < until and len(traffic.search_s) < SEARCHES_MAX:
            duration, status, answer = _timed(client, "POST", "/search", {"query": next(texts), "k": 10})
            if status == OVERLOADED:
                traffic.refused += 1
            elif status != OK or not answer["results"]:
                raise ServiceFailed(f"a search was answered {status}: {answer}")
            else:
                traffic.search_s.append(duration)
        client.close()

    return run


def _adding(port: int, until: float, traffic: Traffic) -> Callable[[], None]:
    def run() -> None:
        client, texts = Client(port), memories(seed=-1)
        while time.perf_counter() < until:
            text = next(texts)
            duration, status, answer = _timed(client, "POST", "/memory/add", {"text": text, "source": SOURCE})
            if status == OVERLOADED:
                traffic.refused += 1
            elif status != OK:
                raise ServiceFailed(f"an add was answered {status}: {answer}")
            else:
                traffic.add_s.append(duration)
                traffic.acknowledged[answer["id"]] = text
        client.close()

    return run


def _noting(run: Callable[[], None], failures: list[BaseException]) -> None:
    try:
        run()
    except Exception as error:  # noqa: BLE001 - a thread's boundary: the parent raises it
        failures.append(error)


def _timed(client: Client, method: str, path: str, body: Any) -> tuple[float, int, Any]:
    begin = time.perf_counter()
    status, answer = client.call(method, path, body)
    return time.perf_counter() - begin, status, answer
