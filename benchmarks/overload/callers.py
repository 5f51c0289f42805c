"""Many callers in one process: closed-loop ones that wait for answers, and open-loop ones at a fixed rate.

Requests are made beforehand and answers are parsed by hand, so that this process is not what is measured; how late it
sends is part of its figures. Slow clients, which send a byte now and then, live here too.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

import uvloop

from benchmarks.load.sentences import memories, questions

ADD_EVERY = 5
"""One request in so many is an add, the others are searches."""

SOURCE = "benchmark/overload"
CONNECTIONS_MAX = 300
ANSWER_TIMEOUT_S = 30.0
IDLE_MAX_S = 8.0
DRIP_INTERVAL_S = 1.0
DRIP_HEAD = b"POST /search HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n"


@dataclass(slots=True)
class Answers:
    """What the callers saw. `acknowledged` maps the id of every add that was answered to its text."""

    seconds: float = 0.0
    search_s: list[float] = field(default_factory=list)
    add_s: list[float] = field(default_factory=list)
    refused_s: list[float] = field(default_factory=list)
    without_retry_after: int = 0
    failed: list[str] = field(default_factory=list)
    late_s: list[float] = field(default_factory=list)
    not_sent: int = 0
    drips_cut: int = 0
    acknowledged: dict[int, str] = field(default_factory=dict)

    @property
    def good(self) -> int:
        return len(self.search_s) + len(self.add_s)

    @property
    def goodput(self) -> float:
        """Answers of 200 a second."""
        return self.good / self.seconds


@dataclass(frozen=True, slots=True)
class Load:
    """`rate` requests a second whatever is answered, or `callers` who wait for answers; beside `drips` slow clients."""

    port: int
    seconds: float
    seed: int
    callers: int = 0
    rate: float = 0.0
    drips: int = 0


@dataclass(frozen=True, slots=True)
class Request:
    sent: bytes
    added: str | None


def generate(load: Load, channel: Connection) -> None:
    """Run a load in this process and send its `Answers`, or what went wrong."""
    try:
        channel.send(uvloop.run(run(load)))
    except Exception as error:  # noqa: BLE001 - the process's boundary: the parent raises it
        channel.send(error)


async def run(load: Load) -> Answers:
    answers, requests = Answers(), _requests(load.seed)
    drips = [asyncio.create_task(_drip(load.port, number, answers)) for number in range(load.drips)]
    begin = time.perf_counter()
    if load.callers:
        until = begin + load.seconds
        await asyncio.gather(*(_closed(load.port, requests, until, answers) for _ in range(load.callers)))
    else:
        await _open(load, requests, answers)
    answers.seconds = time.perf_counter() - begin
    for drip in drips:
        drip.cancel()
    await asyncio.gather(*drips, return_exceptions=True)
    return answers


def _requests(seed: int) -> Iterator[Request]:
    asked, told = questions(seed), memories(seed)
    number = 0
    while True:
        number += 1
        if number % ADD_EVERY:
            yield Request(_post("/search", {"query": next(asked), "k": 10}), None)
        else:
            text = f"{next(told)} Seed {seed}."
            yield Request(_post("/memory/add", {"text": text, "source": SOURCE}), text)


def _post(path: str, body: Any) -> bytes:
    content = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(content)}"
    )
    return head.encode() + b"\r\n\r\n" + content


class Line:
    """A keep-alive connection, not to be used again after it was idle for as long as `fresh` says."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._used_at = time.perf_counter()

    @property
    def fresh(self) -> bool:
        """Whether the service will not have closed it as idle."""
        return time.perf_counter() - self._used_at < IDLE_MAX_S

    @classmethod
    async def open(cls, port: int) -> Line:
        return cls(*await asyncio.open_connection("127.0.0.1", port))

    async def ask(self, request: bytes) -> tuple[int, dict[str, str], bytes]:
        """:raises OSError: If no whole answer comes. :raises EOFError: Likewise."""
        self._writer.write(request)
        self._used_at = time.perf_counter()
        head = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:-2])}
        return int(head[0].split(" ", 2)[1]), headers, await self._reader.readexactly(int(headers["content-length"]))

    def close(self) -> None:
        self._writer.close()


async def _closed(port: int, requests: Iterator[Request], until: float, answers: Answers) -> None:
    line = await Line.open(port)
    while time.perf_counter() < until:
        if await _ask(line, next(requests), time.perf_counter(), answers):
            continue
        line.close()
        try:
            line = await Line.open(port)
        except OSError as error:
            answers.failed.append(repr(error))
            return
    line.close()


async def _open(load: Load, requests: Iterator[Request], answers: Answers) -> None:
    """Arrivals by chance at a steady mean rate. A caller takes an idle connection, or opens one of a bounded number."""
    dice, idle, running = random.Random(load.seed), list[Line](), set[asyncio.Task[None]]()
    begin = time.perf_counter()
    due = 0.0
    while due < load.seconds:
        due += dice.expovariate(load.rate)
        if (wait_s := begin + due - time.perf_counter()) > 0:
            await asyncio.sleep(wait_s)
        request = next(requests)
        if not idle and len(running) >= CONNECTIONS_MAX:
            answers.not_sent += 1
            continue
        task = asyncio.create_task(_one(load.port, idle, request, begin + due, answers))
        running.add(task)
        task.add_done_callback(running.discard)
    await asyncio.gather(*running)
    for line in idle:
        line.close()


async def _one(port: int, idle: list[Line], request: Request, due: float, answers: Answers) -> None:
    while idle and not idle[0].fresh:
        idle.pop(0).close()
    try:
        line = idle.pop() if idle else await Line.open(port)
    except OSError as error:
        answers.failed.append(repr(error))
        return
    if await _ask(line, request, due, answers):
        idle.append(line)
    else:
        line.close()


async def _ask(line: Line, request: Request, due: float, answers: Answers) -> bool:
    """Whether the connection can be used again."""
    begin = time.perf_counter()
    answers.late_s.append(begin - due)
    try:
        status, headers, content = await _bounded(line.ask(request.sent))
    except (OSError, EOFError, TimeoutError) as error:
        answers.failed.append(repr(error))
        return False
    took_s = time.perf_counter() - begin
    if status == 200:
        _note_good(request, content, took_s, answers)
    elif status in (429, 503):
        answers.refused_s.append(took_s)
        answers.without_retry_after += not headers.get("retry-after", "").isdigit()
    else:
        answers.failed.append(f"{status} {content[:200]!r}")
    return headers.get("connection") != "close"


async def _bounded(answer: Awaitable[tuple[int, dict[str, str], bytes]]) -> tuple[int, dict[str, str], bytes]:
    async with asyncio.timeout(ANSWER_TIMEOUT_S):
        return await answer


def _note_good(request: Request, content: bytes, took_s: float, answers: Answers) -> None:
    if request.added is None:
        answers.search_s.append(took_s)
        return
    answers.add_s.append(took_s)
    answers.acknowledged[json.loads(content)["id"]] = request.added


async def _drip(port: int, number: int, answers: Answers) -> None:
    """A byte a second: of a head that never ends, or of a body that would take eleven days. Comes back when cut off."""
    opening = DRIP_HEAD + (b"X-Slow: " if number % 2 else b"\r\n{")
    while True:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(opening)
        try:
            while not reader.at_eof():
                writer.write(b" ")
                await writer.drain()
                await asyncio.wait({closed := asyncio.ensure_future(reader.read(1000))}, timeout=DRIP_INTERVAL_S)
                if closed.done():
                    break
                closed.cancel()
        except OSError:
            pass
        finally:
            writer.close()
        answers.drips_cut += 1
        await asyncio.sleep(DRIP_INTERVAL_S)
