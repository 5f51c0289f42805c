"""The callers: a modest one that waits for each answer, and greedy ones that send as much as they can.

Each runs in a process of its own, on connections that stay open, and retries at once what was refused. A greedy caller
sends requests that were made beforehand, so that it spends its time on the service.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import cycle, islice
from multiprocessing.connection import Connection
from typing import Any

import uvloop

from benchmarks.load.sentences import memories, questions
from benchmarks.overload.callers import Line

ADD_EVERY = 5
"""One request of the modest caller in so many is an add, the others are searches."""

SOURCE = "benchmark/fairness"
RETRY_S = 0.25
"""The modest caller sends a refused write again after this."""

ANSWER_TIMEOUT_S = 90.0
ORDINARY_TOKENS = 250
CJK_CHARS = 49_000
HUGE_TEXTS = 60


class Greed(StrEnum):
    """Requests of the greedy caller."""

    CONNECTIONS = "64 connections"
    BATCHES = "huge batches"
    IMPORTS = "imports"
    SEARCH_BATCHES = "batches of searches"


CONNECTIONS = {Greed.CONNECTIONS: 64, Greed.BATCHES: 8, Greed.IMPORTS: 8, Greed.SEARCH_BATCHES: 16}


@dataclass(frozen=True, slots=True)
class Caller:
    """One process of requests.

    :param greed: None: the modest caller. :param connections: Each waits for its answer.
    """

    port: int
    key: str
    seconds: float
    connections: int
    seed: int
    greed: Greed | None = None


@dataclass(slots=True)
class Answers:
    """Answers to a caller. `write_wait_s` is the time from the first attempt at a write to its success."""

    seconds: float = 0.0
    search_s: list[float] = field(default_factory=list)
    add_s: list[float] = field(default_factory=list)
    write_wait_s: list[float] = field(default_factory=list)
    refused: int = 0
    failed: list[str] = field(default_factory=list)

    @property
    def good(self) -> int:
        return len(self.search_s) + len(self.add_s)

    @property
    def per_s(self) -> float:
        return self.good / self.seconds


def play(caller: Caller, channel: Connection) -> None:
    """Send the caller's `Answers`, or the error, when its time is over."""
    try:
        channel.send(uvloop.run(_played(caller)))
    except Exception as error:  # noqa: BLE001 - the boundary of the process: the parent raises it
        channel.send(error)


async def _played(caller: Caller) -> Answers:
    answers = Answers()
    begin = time.perf_counter()
    until = begin + caller.seconds
    one = _modest if caller.greed is None else _greedy
    async with asyncio.TaskGroup() as group:
        for number in range(caller.connections):
            group.create_task(one(caller, 1000 * caller.seed + number, until, answers))
    answers.seconds = time.perf_counter() - begin
    return answers


async def _modest(caller: Caller, seed: int, until: float, answers: Answers) -> None:
    asked, told = questions(seed), memories(seed)
    line, number = await Line.open(caller.port), 0
    while time.perf_counter() < until:
        number += 1
        if number % ADD_EVERY:
            search = _post("/search", {"query": next(asked), "k": 10}, caller.key)
            line, _ = await _ask(line, search, caller, answers, answers.search_s)
            continue
        add = _post("/memory/add", {"text": f"{next(told)} Seed {seed}.", "source": SOURCE}, caller.key)
        first, stored = time.perf_counter(), False
        while not stored and time.perf_counter() < max(until, first + 4.0):
            line, stored = await _ask(line, add, caller, answers, answers.add_s)
            if not stored:
                await asyncio.sleep(RETRY_S)
        answers.write_wait_s.append(time.perf_counter() - first)
    line.close()


async def _greedy(caller: Caller, seed: int, until: float, answers: Answers) -> None:
    """The last request is not waited for: its client disconnects, as an impatient one does."""
    line, requests = await Line.open(caller.port), _requests(caller, seed)
    while (left_s := until - time.perf_counter()) > 0:
        asking = asyncio.ensure_future(_ask(line, next(requests), caller, answers, answers.search_s))
        await asyncio.wait((asking,), timeout=left_s)
        if not asking.done():
            asking.cancel()
            await asyncio.wait((asking,))
            break
        line, _ = asking.result()
    line.close()


async def _ask(line: Line, request: bytes, caller: Caller, answers: Answers, into: list[float]) -> tuple[Line, bool]:
    """The connection for the next request, and whether this one was carried out."""
    begin = time.perf_counter()
    try:
        async with asyncio.timeout(ANSWER_TIMEOUT_S):
            status, headers, content = await line.ask(request)
    except (OSError, EOFError, TimeoutError) as error:
        answers.failed.append(repr(error))
        line.close()
        return await Line.open(caller.port), False
    if status in (200, 202):
        into.append(time.perf_counter() - begin)
    elif status in (413, 429, 503):
        answers.refused += 1
    else:
        answers.failed.append(f"{status} {content[:200]!r}")
    if headers.get("connection") == "close":
        line.close()
        line = await Line.open(caller.port)
    return line, status in (200, 202)


def _requests(caller: Caller, seed: int) -> Iterator[bytes]:
    """The requests of one greedy connection, again and again."""
    told, asked, key = memories(seed), questions(seed), caller.key
    match caller.greed:
        case Greed.BATCHES:
            ordinary = " ".join(islice(told, ORDINARY_TOKENS // 30))
            texts = [f"{number} {ordinary}" for number in range(500)] if seed % 2 else ["记" * CJK_CHARS] * HUGE_TEXTS
            body = {"memories": [{"text": text, "source": SOURCE} for text in texts]}
            yield from cycle([_post("/memory/add-batch", body, key)])
        case Greed.IMPORTS:
            lines = "\n".join(json.dumps({"text": text, "source": SOURCE}) for text in islice(told, 3_000))
            yield from cycle(
                [_request("/import?no_backup=true&wait_s=20", lines.encode(), "application/x-ndjson", key)]
            )
        case Greed.SEARCH_BATCHES:
            while True:
                queries = [{"query": next(asked), "k": 10} for _ in range(200)]
                yield _post("/search/batch", {"queries": queries}, key)
        case _:
            while True:
                yield _post("/search", {"query": next(asked), "k": 10}, key)


def _post(path: str, body: Any, key: str) -> bytes:
    return _request(path, json.dumps(body, ensure_ascii=False).encode(), "application/json", key)


def _request(path: str, content: bytes, content_type: str, key: str) -> bytes:
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {key}\r\nContent-Type: {content_type}\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content
