"""The real entry point, in a separate process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

CLIENT = Path(__file__).resolve().parents[3] / "client"
COMMAND = [sys.executable, "-m", "souvenir_client.command"]
TIMEOUT_S = 60.0


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(CLIENT), **more}


def souvenir(*arguments: str, cwd: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    return run_in([*COMMAND, *arguments], environment(**more), cwd)


def run_in(command: list[str], env: Mapping[str, str], cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, env=env, cwd=cwd, capture_output=True, text=True, encoding="utf-8", timeout=TIMEOUT_S, check=False
    )
