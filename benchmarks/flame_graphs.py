"""Flame graphs of a search, an add and a context in the engine: where their time goes.

    python -m benchmarks.flame_graphs
    python -m benchmarks.flame_graphs --memories 100000 --operations 200

Each operation is repeated on a store of so many memories, and of as many messages up to 10,000, with the real embedding
model; queries are repeated, so their vectors come from the query cache, and adds are of new texts. Samples are taken
every half a millisecond on the calling thread. The results folder gets a page with the flame graph of each operation,
which needs no network (view: timeline). The shares of files are printed: the time in a file's own code and in the
libraries that it calls, such as numpy, SQLite or the runtime of the model.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from contextlib import closing
from itertools import islice
from pathlib import Path

from pyinstrument import Profiler
from pyinstrument.frame import Frame
from pyinstrument.renderers import HTMLRenderer
from pyinstrument.session import Session

from benchmarks.calls import operations
from benchmarks.report import RESULTS_DIR, commit, progress, table
from souvenir.core.settings import Settings
from souvenir.memories.engine import MemoryEngine
from souvenir.models.embedding.factory import embedder_of

ROOT = Path(__file__).resolve().parents[1]
INTERVAL_S = 0.0005
WARM = 20
SHOWN = 12
MOST_MESSAGES = 10_000


def sampled(operation: Callable[[], object], count: int) -> Session:
    """Run an operation `count` times and return its samples."""
    for _ in range(WARM):
        operation()
    profiler = Profiler(interval=INTERVAL_S, async_mode="disabled")
    with profiler:
        for _ in range(count):
            operation()
    session = profiler.last_session
    if session is None:
        raise RuntimeError("nothing was sampled")
    return session


def shares_of(session: Session) -> dict[str, float]:
    """Return the share of the time in the own code of each file of the project and in the libraries that it calls."""
    seconds = defaultdict[str, float](float)
    root = session.root_frame()
    waiting: list[tuple[Frame, str]] = [] if root is None else [(root, "")]
    while waiting:
        frame, caller = waiting.pop()
        path = _in_project(frame.file_path) or caller
        seconds[path] += frame.time - sum(child.time for child in frame.children)
        waiting += [(child, path) for child in frame.children]
    total = sum(seconds.values())
    return {path: spent / total for path, spent in sorted(seconds.items(), key=lambda item: -item[1])}


def _in_project(file: str | None) -> str | None:
    path = Path(file or "")
    inside = path.is_absolute() and path.is_relative_to(ROOT) and "site-packages" not in path.parts
    return str(path.relative_to(ROOT)) if inside else None


def write(session: Session, name: str) -> Path:
    """Write the flame graph; return the page."""
    RESULTS_DIR.mkdir(exist_ok=True)
    path = RESULTS_DIR / f"flame_graph_{name}_{commit().replace('/', '-')}.html"
    path.write_text(HTMLRenderer().render(session), encoding="utf-8")
    return path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=10_000)
    parser.add_argument("--operations", type=int, default=500)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="souvenir-profile-") as folder:
        settings = Settings(data_dir=Path(folder))
        with closing(embedder_of(settings)) as embedder:
            embedder.load()
            with closing(MemoryEngine.open(settings, embedder)) as engine:
                messages = min(arguments.memories, MOST_MESSAGES)
                for name, operation in operations(engine, settings, arguments.memories, messages).items():
                    session = sampled(operation, arguments.operations)
                    progress(f"{name}: {session.duration / arguments.operations * 1e3:.2f} ms, {write(session, name)}")
                    rows = [(path, f"{share:.1%}") for path, share in islice(shares_of(session).items(), SHOWN)]
                    print("\n" + table((name, "share"), rows) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
