"""A TCP proxy on loopback between one replica and one server, which can cut the replica off.

It is a process of its own, so that threads of clients do not delay what passes; it obeys lines of its standard input.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from contextlib import suppress
from enum import Enum
from pathlib import Path

CHUNK_BYTES = 65_536
ROOT = Path(__file__).resolve().parents[2]
DONE = "done"


class Passage(Enum):
    """Forward everything, refuse connections, stall open connections, or drop responses."""

    OPEN = "open"
    CLOSED = "closed"
    SILENT = "silent"
    UNANSWERED = "unanswered"


class Proxy:
    """`port` listens all the time; a closed proxy resets the connections that it gets."""

    def __init__(self, target_port: int) -> None:
        command = [sys.executable, "-m", "benchmarks.replica_faults.proxy", str(target_port)]
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.port = int(self._line())

    def let(self, passage: Passage, *, reset: bool = False) -> None:
        """:param reset: Also reset the present connections, as is done when the proxy closes."""
        if self._process.stdin is not None:
            self._process.stdin.write(f"{passage.value} {int(reset or passage is Passage.CLOSED)}\n")
        if self._line() != DONE:
            raise RuntimeError("the proxy does not answer")

    def close(self) -> None:
        """End the process, and with it all connections."""
        self._process.kill()
        self._process.communicate()

    def _line(self) -> str:
        return "" if self._process.stdout is None else self._process.stdout.readline().strip()


class _Relay:
    """The connections of the proxy's process."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._passage = Passage.OPEN
        self._writers = set[asyncio.StreamWriter]()
        self._changed = asyncio.Event()

    def let(self, passage: Passage, *, reset: bool) -> None:
        self._passage = passage
        self._changed.set()
        self._changed = asyncio.Event()
        if reset:
            for writer in tuple(self._writers):
                writer.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._passage is Passage.CLOSED:
            writer.transport.abort()
            return
        self._writers.add(writer)
        onward: asyncio.StreamWriter | None = None
        try:
            with suppress(OSError):
                answers, onward = await asyncio.open_connection("127.0.0.1", self._target_port)
                self._writers.add(onward)
                pumps = [
                    asyncio.create_task(self._pump(reader, onward, are_answers=False)),
                    asyncio.create_task(self._pump(answers, writer, are_answers=True)),
                ]
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
        finally:
            for one in (writer, onward):
                if one is not None:
                    self._writers.discard(one)
                    one.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, are_answers: bool) -> None:
        while chunk := await reader.read(CHUNK_BYTES):
            while self._passage is Passage.SILENT:
                await self._changed.wait()
            if self._passage is Passage.UNANSWERED and are_answers:
                continue
            writer.write(chunk)
            await writer.drain()


async def _run(target_port: int) -> None:
    relay = _Relay(target_port)
    server = await asyncio.start_server(relay.serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    orders = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    while order := await orders.readline():
        passage, reset = order.decode().split()
        relay.let(Passage(passage), reset=reset == "1")
        print(DONE, flush=True)
    # The process that started it has ended.
    os._exit(0)


if __name__ == "__main__":
    asyncio.run(_run(int(sys.argv[1])))
