"""Processes made to be killed, each at a named point of a job that asks a model: a fork for each, which kills itself.

python -m tests.graph.describing_process FOLDER prints a line for each point: its name and how its fork ended.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import structlog

from memory_engine import MemoryEngine
from souvenir.graph.model_claims import Describing
from souvenir.graph.parts import GraphParts
from souvenir.jobs.running import RunningJob
from souvenir.settings import Settings
from souvenir.store import claims, described, jobs
from souvenir.store.jobs import Job, JobStatus
from tests.extraction.dying_process import after, before
from tests.extraction.scripted_model import ScriptedModel
from tests.fake_embedder import FakeEmbedder
from tests.graph.describe import ANN, MOVED, PATIENCE_S, WORKS, always, claim, lives, say

MODEL = always(lives(), claim("kind", "Heron", "company", WORKS))

POINTS: dict[str, Callable[[], None]] = {
    "submitted": lambda: after(Describing, "submit"),
    "asking": lambda: before(ScriptedModel, "generate"),
    "answered": lambda: after(ScriptedModel, "generate"),
    "saved": lambda: after(RunningJob, "checkpoint"),
    "storing": lambda: after(claims, "insert"),
    "marking": lambda: after(described, "mark"),
    "stored": lambda: after(Describing, "_store"),
    "ending": lambda: before(jobs, "finish"),
    "undoing": lambda: after(claims, "delete"),
    "unmarking": lambda: after(described, "unmark"),
}


def go_through(describing: Describing) -> Job:
    """Whatever of it was done before: submit and wait."""
    describing.start()
    found, _ = describing.jobs.list(ANN, limit=1)
    job = found[0] if found else describing.submit(ANN, session="s", limit=10)
    done = describing.jobs.wait(job.id, PATIENCE_S)
    assert done.status is JobStatus.COMPLETED, done
    return done


def run(point: str, folder: Path) -> None:
    engine = MemoryEngine.open(Settings(data_dir=folder), FakeEmbedder())
    engine.warm_up()
    say(engine, MOVED, WORKS)
    GraphParts.open(engine).filling.catch_up()
    describing = Describing(engine, MODEL, Settings(data_dir=folder))
    POINTS[point]()
    describing.undo(ANN, go_through(describing).id)


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    for number, point in enumerate(POINTS):
        pid = os.fork()
        if pid == 0:
            try:
                run(point, Path(sys.argv[1]) / str(number))
            finally:
                os._exit(1)
        _, status = os.waitpid(pid, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        print(f"{point}|{'killed' if killed else status}", flush=True)
