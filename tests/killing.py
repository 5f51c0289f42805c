"""Runs a process of the tests and kills it in the middle of what it does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from signal import SIGKILL
from threading import Timer

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_S = 60.0


def lines_until_killed(module: str, *arguments: str | Path, lines: int) -> list[str]:
    """What the module's process printed until it was killed after about so many lines; only whole lines count."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        hanging = Timer(PATIENCE_S, process.kill)
        hanging.start()
        try:
            assert process.stdout is not None
            said = [process.stdout.readline() for _ in range(lines)]
            process.kill()
            said += process.stdout.readlines()
        finally:
            hanging.cancel()
            process.kill()
    assert process.returncode == -SIGKILL
    return [line.strip() for line in said if line.endswith("\n")]
