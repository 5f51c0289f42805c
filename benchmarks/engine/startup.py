"""How long a fresh process takes until it can search, and the memory it then holds; `measure` runs one.

The clock starts before the interpreter does. The real model is loaded too, as in the service, after the index.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BEHIND = 1_000


@dataclass(frozen=True, slots=True)
class Start:
    """`index_s` until every memory can be found, `answer_s` until a question was embedded and answered by the model.

    `resident_mb` is what the process then holds in memory, `peak_mb` the most that it held.
    """

    index_s: float
    answer_s: float
    resident_mb: float
    peak_mb: float


@dataclass(frozen=True, slots=True)
class Starts:
    """Starts on one folder: without a snapshot, with a current one, and with one that lacks `BEHIND` passages."""

    without: Start
    current: Sequence[Start]
    behind: Start


def measure(data_dir: Path) -> Start:
    """Start on a data folder that was built with the default model's id, and close in order."""
    command = [sys.executable, "-m", "benchmarks.engine.startup", str(data_dir), repr(time.time())]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the started engine failed:\n{done.stdout}{done.stderr}")
    return Start(**json.loads(done.stdout.splitlines()[-1]))


def start(data_dir: Path, began_at: float) -> Start:
    from souvenir.core.settings import Settings
    from souvenir.core.types import Scope, SearchQuery
    from souvenir.memories.engine import MemoryEngine  # the import is part of what is measured
    from souvenir.models.embedding.factory import embedder_of

    settings = Settings(data_dir=data_dir)
    embedder = embedder_of(settings)
    engine = MemoryEngine.open(settings, embedder)
    engine.warm_up()
    index_s = time.time() - began_at
    result = engine.search(Scope(), SearchQuery("a question that needs the model", top_k=10))
    answer_s = time.time() - began_at
    if not result.hits or result.degraded:
        raise RuntimeError("the search after the start did not run in full")
    resident_mb, peak_mb = memory_mb()
    engine.close()
    return Start(index_s, answer_s, resident_mb, peak_mb)


def memory_mb() -> tuple[float, float]:
    """Resident memory of this process now and at its peak, in MiB, as Linux counts it."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    now, peak = (re.search(rf"{name}:\s+(\d+) kB", status) for name in ("VmRSS", "VmHWM"))
    if now is None or peak is None:
        raise RuntimeError("/proc/self/status does not say how much memory is used")
    return int(now[1]) / 1024, int(peak[1]) / 1024


if __name__ == "__main__":
    measured = start(Path(sys.argv[1]), float(sys.argv[2]))
    print(json.dumps({name: getattr(measured, name) for name in Start.__slots__}))
