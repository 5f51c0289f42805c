"""The final report of every benchmark: tables, targets and measurements, and a result file that git ignores."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

RESULTS_DIR = Path(__file__).resolve().parent / "results"
MEASURED_LIBRARIES = ("faiss-cpu", "numpy", "onnxruntime", "apsw", "rank-bm25")


@dataclass(frozen=True, slots=True)
class Target:
    """A figure that is wanted: at least or at most `limit`, in the unit that the name says."""

    name: str
    measured: float
    limit: float
    at_least: bool = False

    @property
    def met(self) -> bool:
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit

    def row(self) -> tuple[str, ...]:
        sign = "≥" if self.at_least else "≤"
        return self.name, f"{self.measured:.4g}", f"{sign} {self.limit:g}", "met" if self.met else "NOT MET"


def percentile_ms(seconds: Sequence[float], percent: float) -> float:
    """A percentile of durations, in milliseconds; NaN if there are none."""
    return float(np.percentile(seconds, percent)) * 1e3 if seconds else float("nan")


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table with aligned columns."""
    widths = [max(len(line[column]) for line in (header, *rows)) for column in range(len(header))]
    lines = [header, ["-" * width for width in widths], *rows]
    return "\n".join(
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in lines
    )


def print_targets(targets: Sequence[Target]) -> None:
    print("\n" + table(("wanted", "measured", "limit", ""), [target.row() for target in targets]))


def conclude(benchmark: str, figures: Mapping[str, Any], targets: Sequence[Target]) -> int:
    """Print the targets, keep the run, and return the exit code: 0 if all targets are met."""
    print_targets(targets)
    print(f"\n{write_results(benchmark, figures, targets)}")
    return 0 if all(target.met for target in targets) else 1


def progress(text: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {text}", flush=True)


def commit() -> str:
    """The commit that is measured, as `git describe` names it: with `-dirty` if files differ from it."""
    describe = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(describe, cwd=RESULTS_DIR.parent, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "unknown"


def write_results(benchmark: str, figures: Mapping[str, Any], targets: Sequence[Target] = ()) -> Path:
    """Keep a run as JSON, with what it ran on."""
    RESULTS_DIR.mkdir(exist_ok=True)
    now, measured = datetime.now(UTC), commit()
    path = RESULTS_DIR / f"{benchmark}_{measured.replace('/', '-')}_{now:%Y%m%d_%H%M%S}.json"
    document = {
        "benchmark": benchmark,
        "commit": measured,
        "at": now.isoformat(timespec="seconds"),
        "command": ["python", "-m", f"benchmarks.{benchmark}", *sys.argv[1:]],
        "machine": {"cores": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()},
        "libraries": {name: version(name) for name in MEASURED_LIBRARIES},
        "targets": [{**asdict(target), "met": target.met} for target in targets],
        **figures,
    }
    path.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return path
