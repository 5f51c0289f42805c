"""CPU time of `POST /memory/add` with usage counting and events, next to a service without either.

Two services with the real embedding model in this process, over equal stores; the other one has USAGE_TRACKING=false,
and the triggers that write events are dropped from its database. A client in another process adds the same texts to
both, in turns of `TURN`, each side first in every second pair. A turn ends when its usage is written (a service in use
writes it once in 5 seconds, so this overstates it) and the background work, such as the graph's, is done.
"""

from __future__ import annotations

import http.client
import json
import multiprocessing
import time
from collections.abc import Sequence
from contextlib import ExitStack
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import cast

from fastapi import FastAPI

from app import create_app
from benchmarks.load.__main__ import build
from benchmarks.load.sentences import memories
from benchmarks.running import serving, wait_until_ready
from souvenir.core.settings import LogLevel, Settings
from souvenir.server.service import Service
from souvenir.store import sql

TURN = 50
WARM_UP = 4
"""Pairs of turns before those that count."""

MOST_ADDED = 1.03

IDLE_STEP_S = 0.05
IDLE_CPU_S = 0.001
"""The process is idle after three steps with at most this CPU time each."""

HEADERS = {
    "Content-Type": "application/json",
    "X-Memories-Client": "codex",
    "X-Memories-Session-Id": "0b6f3c52-5d0c-4c55-9a0e-3f6a3f0f6a51",
    "X-Memories-Invocation": "manual",
}


def drop_event_triggers(connection: sql.Connection) -> None:
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'")]
    for name in filter(lambda name: name.endswith("_event"), names):
        connection.execute(f'DROP TRIGGER "{name}"')


def send_adds(turns: Connection) -> None:
    """The client's process: adds each list of texts that it receives with a port; ends with port 0."""
    while (turn := cast("tuple[int, list[str]]", turns.recv()))[0]:
        port, texts = turn
        # Servers close connections that are idle during the turn of the other one.
        client = http.client.HTTPConnection("127.0.0.1", port)
        for text in texts:
            client.request("POST", "/memory/add", json.dumps({"text": text, "source": "bench/adds"}), HEADERS)
            response = client.getresponse()
            response.read()
            if response.status != 200:
                raise RuntimeError(f"/memory/add was answered {response.status}")
        client.close()
        turns.send(port)


def wait_until_idle() -> None:
    idle = 0
    while idle < 3:
        begin = time.process_time()
        time.sleep(IDLE_STEP_S)
        idle = idle + 1 if time.process_time() - begin <= IDLE_CPU_S else 0


def turn_cpu_s(turns: Connection, port: int, service: Service, texts: Sequence[str]) -> float:
    """The CPU time of the process for these adds and the work that they leave behind."""
    begin = time.process_time()
    turns.send((port, list(texts)))
    turns.recv()
    service.usage.flush()
    wait_until_idle()
    return time.process_time() - begin


def measure_adds(folder: Path, pairs: int) -> list[tuple[float, float]]:
    """CPU milliseconds of an add with usage and events, and without, in each pair of turns."""
    apps: list[FastAPI] = []
    for name, tracked in (("with", True), ("without", False)):
        build(folder / name, 200)
        apps.append(create_app(Settings(data_dir=folder / name, usage_tracking=tracked, log_level=LogLevel.WARNING)))
    texts = memories(seed=1)
    with ExitStack() as running:
        ports = [running.enter_context(serving(app)) for app in apps]
        for port in ports:
            wait_until_ready(port)
        services: list[Service] = [app.state.service for app in apps]
        services[1].engine.write_rows(drop_event_triggers)
        processes = multiprocessing.get_context("spawn")
        turns, of_client = processes.Pipe()
        client = processes.Process(target=send_adds, args=(of_client,))
        client.start()
        found = []
        for number in range(WARM_UP + pairs):
            chosen, spent = list(islice(texts, TURN)), [0.0, 0.0]
            for side in (0, 1) if number % 2 else (1, 0):
                spent[side] = 1e3 / TURN * turn_cpu_s(turns, ports[side], services[side], chosen)
            found.append((spent[0], spent[1]))
        turns.send((0, []))
        client.join()
    return found[WARM_UP:]
