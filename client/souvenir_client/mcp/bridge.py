"""The bridge itself: each line of standard input becomes a request, and its answers become lines of standard output.

Invariants: no request holds up another, but for the places that the service has; a request that is taken back is closed
and gets no answer; the end of the input and a signal let what runs finish, for a while.
"""

from __future__ import annotations

import asyncio
import signal
import sys

import httpx

from souvenir_client.errors import SouvenirError
from souvenir_client.mcp.exchange import Exchange
from souvenir_client.mcp.messages import (
    INVALID_REQUEST,
    LISTEN,
    NOT_DONE,
    Answer,
    Message,
    Unusable,
    error_line,
    read_message,
)
from souvenir_client.mcp.stdio import MAX_LINE_BYTES, Lines, Mark, Output, own_output

MAX_WAITING = 1000
"""Messages that are worked on or wait; more are refused."""

FINISH_S = 10.0
"""How long what runs may take when no more comes."""

TOO_LONG = f"A line is longer than {MAX_LINE_BYTES} bytes: send less at once."
TOO_MANY = f"More than {MAX_WAITING} requests wait for their answers: send the next when some of them are there."


class Bridge:
    """:param exchange: With the service."""

    def __init__(self, exchange: Exchange, lines: Lines, output: Output) -> None:
        self._exchange, self._lines, self._output = exchange, lines, output
        self._running: dict[asyncio.Task[None], Message | None] = {}
        self._failure: OSError | None = None

    async def run(self) -> None:
        """Until the input ends.

        :raises OSError: If nobody reads the output.
        """
        async for line in self._lines:
            if self._failure is not None:
                break
            self._take(line)
        await self._finish()
        if self._failure is not None:
            raise self._failure

    def _take(self, line: bytes | Mark) -> None:
        if isinstance(line, Mark):
            self._answer(error_line(None, INVALID_REQUEST, TOO_LONG))
            return
        try:
            message = read_message(line)
        except Unusable as error:
            self._answer(error.answer)
            return
        if len(self._running) >= MAX_WAITING:
            if message.id is not None:
                self._answer(error_line(message.id, NOT_DONE, TOO_MANY))
        elif message.cancels is None:
            self._start(message)
        else:
            self._take_back(message, message.cancels)

    def _take_back(self, message: Message, key: str) -> None:
        """Close a request; one that is over needs nothing.

        Before 2026 the service is told besides, since there a closed connection says nothing.
        """
        for task, taken in list(self._running.items()):
            if taken is not None and taken.id is not None and taken.key == key:
                task.cancel()
                if taken.own_version is None:
                    self._start(message)

    def _start(self, message: Message) -> None:
        self._keep(asyncio.create_task(self._ask(message)), message)

    def _answer(self, line: bytes) -> None:
        self._keep(asyncio.create_task(self._write(line)), None)

    def _keep(self, task: asyncio.Task[None], message: Message | None) -> None:
        self._running[task] = message
        task.add_done_callback(self._running.pop)

    async def _ask(self, message: Message) -> None:
        try:
            await self._exchange.ask(message, self._deliver)
        except SouvenirError as error:
            log(f"{message.method or 'an answer'} did not reach the service: {error}")
        except Exception as error:  # noqa: BLE001 - the boundary: a fault of ours must not leave a request without answer
            fault = f"This is a fault of the bridge itself: {type(error).__name__}: {error}."
            log(fault)
            if message.id is not None:
                await self._write(error_line(message.id, NOT_DONE, fault))

    async def _deliver(self, answer: Answer) -> None:
        task = asyncio.current_task()
        if answer.is_last and task is not None:
            # It is over: nothing can take it back any more.
            self._running[task] = None
        await self._write(answer.line)

    async def _write(self, line: bytes) -> None:
        try:
            await self._output.write(line)
        except OSError as error:
            self._failure = error
            self._lines.end()

    async def _finish(self) -> None:
        for task, message in self._running.items():
            if message is not None and message.method == LISTEN:
                task.cancel()
        if self._running:
            await asyncio.wait(list(self._running), timeout=0.0 if self._failure else FINISH_S)
        for task in self._running:
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)


async def serve(http: httpx.AsyncClient, exchange: Exchange) -> None:
    """Bridge this process's standard input and output to a service, until the input ends or a signal comes."""
    lines, output = Lines(0), Output(own_output())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: lines.end())
    async with http:
        await Bridge(exchange, lines, output).run()


def log(sentence: str) -> None:
    """Tell whoever looks at the editor's log; standard output is for messages alone."""
    sys.stderr.write(f"souvenir mcp: {sentence}\n")
    sys.stderr.flush()
