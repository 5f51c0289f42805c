"""Runs a process of the tests and kills it in the middle of what it does."""

from __future__ import annotations

import os
from multiprocessing.connection import Connection
from pathlib import Path
from signal import SIGKILL
from threading import Timer

from tests.forking import CONTEXT, run_program

PATIENCE_S = 60.0


def lines_until_killed(module: str, *arguments: str | Path, lines: int) -> list[str]:
    """What the module's process printed until it was killed after about so many lines; only whole lines count."""
    reading, writing = CONTEXT.Pipe(duplex=False)
    process = CONTEXT.Process(target=_run, args=(module, [str(argument) for argument in arguments], writing))
    process.start()
    writing.close()
    hanging = Timer(PATIENCE_S, process.kill)
    hanging.start()
    try:
        with reading, os.fdopen(os.dup(reading.fileno()), encoding="utf-8") as output:
            said = [output.readline() for _ in range(lines)]
            process.kill()
            said += output.readlines()
    finally:
        hanging.cancel()
        process.kill()
        process.join()
    assert process.exitcode == -SIGKILL
    process.close()
    return [line.strip() for line in said if line.endswith("\n")]


def _run(module: str, arguments: list[str], output: Connection) -> None:
    os.dup2(output.fileno(), 1)
    output.close()
    run_program(["-m", module, *arguments])
