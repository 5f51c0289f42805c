"""CPU time of `POST /search` outside of `MemoryEngine.search`, next to a bare FastAPI route with the same models.

`benchmarks.add_overhead`, which runs too, compares `POST /memory/add` with and without usage and events, and
`benchmarks.calls` counts the Python calls and SQL statements of a search, an add and a context in the engine.

    python -m benchmarks.overhead
    python -m benchmarks.overhead --rounds 3 --requests 100

The application over 200 memories with the real embedding model, and a plain FastAPI application whose route takes the
same request model and returns the same answers, byte for byte, from a dictionary. uvicorn serves both from this process
(httptools, uvloop, no request logs on either side); a client in another process calls them over loopback, one request
at a time, in turns of 20. The queries are repeated, so their vectors come from the query cache.

Figures are CPU time of this process, of all its threads, as `time.process_time` counts it. The engine's part is the
`time.thread_time` inside `MemoryEngine.search`.
"""

from __future__ import annotations

import argparse
import http.client
import json
import multiprocessing
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median, quantiles
from typing import Any, get_type_hints
from unittest.mock import patch

from fastapi import FastAPI
from pydantic import BaseModel
from starlette.types import ASGIApp, Receive, Scope, Send

from app import create_app
from benchmarks.add_overhead import MOST_ADDED, measure_adds
from benchmarks.add_overhead import TURN as ADDS_A_TURN
from benchmarks.calls import count_calls
from benchmarks.load.__main__ import build
from benchmarks.load.sentences import questions
from benchmarks.report import Target, print_targets, progress, table, write_results
from benchmarks.running import serving, wait_until_ready
from memory_engine import MemoryEngine
from souvenir.core.settings import LogLevel, Settings

MEMORIES = 200
QUERIES = 10
TURN = 20
MOST_OUTSIDE = 1.8

SERVER, MIDDLEWARE, BEFORE, ENGINE, AFTER = "server", "middleware", "before the engine", "engine", "after the engine"
LAYERS = (SERVER, MIDDLEWARE, BEFORE, ENGINE, AFTER)

Search = Callable[..., Any]


class CpuClock:
    """Divides the CPU time of the process among the layers that a request passes; for one request at a time."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.engine_s = 0.0
        self._last = 0.0

    def start(self) -> None:
        self._last = time.process_time()

    def spent_in(self, layer: str) -> None:
        """Everything since the last call, or the start, was this layer's."""
        now = time.process_time()
        self.seconds[layer] += now - self._last
        self._last = now

    def around_engine(self, search: Search) -> Search:
        """The same search, timed; for a bare route it is the function of the route."""

        def timed(*args: Any, **options: Any) -> Any:
            self.spent_in(BEFORE)
            begin = time.thread_time()
            try:
                return search(*args, **options)
            finally:
                self.engine_s += time.thread_time() - begin
                self.spent_in(ENGINE)

        return timed

    def around(self, app: FastAPI) -> ASGIApp:
        """The same application, timed before and behind its middleware."""
        routes = self._between(app.router.middleware_stack, MIDDLEWARE, AFTER)
        app.router.middleware_stack = routes  # type: ignore[assignment]  # any ASGI application will do
        return self._between(app, SERVER, MIDDLEWARE)

    def _between(self, inner: ASGIApp, before: str, after: str) -> ASGIApp:
        async def timed(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http":
                return await inner(scope, receive, send)
            self.spent_in(before)
            await inner(scope, receive, send)
            self.spent_in(after)
            return None

        return timed


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU milliseconds of one request."""

    layers: Mapping[str, float]
    engine: float

    @property
    def total(self) -> float:
        return sum(self.layers.values())

    @property
    def outside(self) -> float:
        return self.total - self.engine


@dataclass(frozen=True, slots=True)
class Round:
    souvenir: Cost
    bare: Cost

    @property
    def outside_ratio(self) -> float:
        return self.souvenir.outside / self.bare.total

    @property
    def whole_ratio(self) -> float:
        return self.souvenir.total / self.bare.total

    @property
    def engine_share(self) -> float:
        return self.souvenir.engine / self.souvenir.total


def search_models(app: FastAPI) -> tuple[type[BaseModel], type[BaseModel]]:
    """Request and response models of the application's search."""
    endpoint = next(route.endpoint for route in app.routes if getattr(route, "path", "") == "/search")  # type: ignore[attr-defined]  # an API route
    hints = get_type_hints(endpoint)
    return hints["body"], hints["return"]


def bare_app(clock: CpuClock, models: tuple[type[BaseModel], type[BaseModel]], answers: Mapping[str, Any]) -> FastAPI:
    """A plain application with one route, which returns the answer of a query.

    As in ours, fields that are not set are left out, and FastAPI's own telemetry is off.
    """
    request_model, response_model = models
    answer = clock.around_engine(answers.__getitem__)

    def search(body: Any) -> Any:
        return answer(body.query)

    search.__annotations__ = {"body": request_model, "return": response_model}
    app = FastAPI(telemetry={"tracing": False, "metrics": False, "logs": False})
    app.post("/search", response_model_exclude_unset=True)(search)
    return app


def ask(client: http.client.HTTPConnection, query: str) -> bytes:
    """:raises RuntimeError: If the answer is not 200."""
    client.request("POST", "/search", json.dumps({"query": query}), {"Content-Type": "application/json"})
    response = client.getresponse()
    content = response.read()
    if response.status != 200:
        raise RuntimeError(f"/search was answered {response.status}: {content.decode()}")
    return content


def send_turns(queries: Sequence[str], turns: Connection) -> None:
    """The client's process: for each port that it receives, one turn of requests; ends with port 0."""
    clients: dict[int, http.client.HTTPConnection] = {}
    while port := turns.recv():
        client = clients.setdefault(port, http.client.HTTPConnection("127.0.0.1", port))
        for number in range(TURN):
            ask(client, queries[number % len(queries)])
        turns.send(port)


def measured(turns: Connection, sides: Sequence[tuple[int, CpuClock]], count: int) -> list[Cost]:
    """The cost of a request on each side, over so many requests in turns."""
    for _, clock in sides:
        clock.seconds.clear()
        clock.engine_s = 0.0
    for _ in range(count // TURN):
        for port, clock in sides:
            clock.start()
            turns.send(port)
            turns.recv()
            clock.spent_in(SERVER)
    per_request = 1e3 / (count // TURN * TURN)
    return [
        Cost({layer: clock.seconds[layer] * per_request for layer in LAYERS}, clock.engine_s * per_request)
        for _, clock in sides
    ]


def measure(data_dir: Path, rounds: int, count: int) -> list[Round]:
    """:raises RuntimeError: If the two applications answer differently."""
    clock, bare_clock = CpuClock(), CpuClock()
    queries = list(islice(questions(seed=0), QUERIES))
    answers: dict[str, Any] = {}
    with patch.object(MemoryEngine, "search", clock.around_engine(MemoryEngine.search)):
        app = create_app(Settings(data_dir=data_dir, log_level=LogLevel.WARNING))
        models = search_models(app)
        bare = bare_clock.around(bare_app(bare_clock, models, answers))
        with serving(clock.around(app)) as port, serving(bare) as bare_port:
            wait_until_ready(port)
            compare(port, bare_port, queries, models[1], answers)
            processes = multiprocessing.get_context("spawn")
            turns, of_client = processes.Pipe()
            client = processes.Process(target=send_turns, args=(queries, of_client))
            client.start()
            sides = ((port, clock), (bare_port, bare_clock))
            measured(turns, sides, 2 * TURN)  # to warm up
            found = [Round(*measured(turns, sides, count)) for _ in range(rounds)]
            turns.send(0)
            client.join()
    return found


def compare(port: int, bare_port: int, queries: Sequence[str], model: type[BaseModel], answers: dict[str, Any]) -> None:
    """Let the bare application return what the other one answers.

    :raises RuntimeError: If its answer is not the same.
    """
    client, bare = (http.client.HTTPConnection("127.0.0.1", one) for one in (port, bare_port))
    for query in queries:
        answer = ask(client, query)
        answers[query] = model.model_validate_json(answer)
        if ask(bare, query) != answer:
            raise RuntimeError(f"the bare application answers {query!r} in another way")
    client.close()
    bare.close()


def report(rounds: Sequence[Round]) -> list[Target]:
    """Print the tables."""
    sides = {"Souvenir": [one.souvenir for one in rounds], "bare FastAPI": [one.bare for one in rounds]}
    rows = [
        (
            side,
            *(f"{median(cost.layers[layer] for cost in costs):.3f}" for layer in LAYERS),
            f"{median(cost.total for cost in costs):.3f}",
        )
        for side, costs in sides.items()
    ]
    print("\nCPU milliseconds of a request, median\n\n" + table(("", *LAYERS, "together"), rows))
    figures = {
        "outside of the engine / bare": [one.outside_ratio for one in rounds],
        "whole request / bare": [one.whole_ratio for one in rounds],
        "engine's share of the request": [one.engine_share for one in rounds],
    }
    ratios = [(name, *(f"{figure:.2f}" for figure in (min(of), median(of), max(of)))) for name, of in figures.items()]
    print("\n" + table(("", "min", "median", "max"), ratios))
    return [
        Target("CPU outside of the engine / bare route, median", median(figures[next(iter(figures))]), MOST_OUTSIDE)
    ]


def report_adds(adds: Sequence[tuple[float, float]]) -> Target:
    """Print the table of the adds, from pairs of turns with and without usage and events."""
    ratios = [counted / plain for counted, plain in adds]
    low, middle, high = quantiles(ratios, n=4)
    counted, plain = (median(side) for side in zip(*adds, strict=True))
    row = (f"{counted:.3f}", f"{plain:.3f}", f"{low:.3f}", f"{middle:.3f}", f"{high:.3f}")
    header = ("with usage and events", "without", "ratio, lower quartile", "median", "upper quartile")
    print("\nCPU milliseconds of an add, median of the turns\n\n" + table(header, [row]))
    return Target("CPU of an add with usage and events / without, median of the pairs", middle, MOST_ADDED)


def run(rounds: int, count: int, folder: Path) -> bool:
    progress(f"storing {MEMORIES} memories")
    build(folder / "data", MEMORIES)
    progress(f"{rounds} rounds of {count} requests to each application")
    found = measure(folder / "data", rounds, count)
    targets = report(found)
    pairs = rounds * count // ADDS_A_TURN
    progress(f"{pairs} pairs of turns of {ADDS_A_TURN} adds to each of two services")
    adds = measure_adds(folder, pairs)
    targets.append(report_adds(adds))
    progress("counting calls and statements")
    targets += count_calls(folder)
    print_targets(targets)
    figures = [
        {
            "souvenir": dict(one.souvenir.layers),
            "engine": one.souvenir.engine,
            "bare": dict(one.bare.layers),
            "outside_ratio": one.outside_ratio,
            "whole_ratio": one.whole_ratio,
        }
        for one in found
    ]
    results = {"cpu_milliseconds_of_a_request": figures, "cpu_milliseconds_of_an_add_with_and_without": adds}
    print(f"\n{write_results('overhead', results, targets)}")
    return all(target.met for target in targets)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--requests", type=int, default=300, help=f"to each application in a round, in turns of {TURN}")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="souvenir-bench-") as folder:
        return 0 if run(arguments.rounds, arguments.requests, Path(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
