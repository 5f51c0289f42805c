"""Kill a forked process at each named point of a job that asks a model.

python -m tests.knowledge.model_claims_process FOLDER prints a line for each point: its name and how its fork ended.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import structlog

from souvenir.core.settings import Settings
from souvenir.jobs.handler import RunningJob
from souvenir.knowledge.model_claims import ModelClaims
from souvenir.knowledge.services import KnowledgeServices
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin import jobs
from souvenir.store.admin.jobs import Job, JobStatus
from souvenir.store.graph import claims, description_queue
from tests.fake_embedder import FakeEmbedder
from tests.knowledge.agent import ANN, Agent
from tests.knowledge.model_claims_setup import MOVED, PATIENCE_S, WORKS, always, claim, lives
from tests.learning.dying_process import after, before, kill_at
from tests.learning.scripted_model import ScriptedModel

MODEL = always(lives(), claim("kind", "Heron", "company", WORKS), claim("topic_name", "T1", "Life of Alice", MOVED))

POINTS: dict[str, Callable[[], None]] = {
    "submitted": lambda: after(ModelClaims, "submit"),
    "asking": lambda: before(ScriptedModel, "generate"),
    "answered": lambda: after(ScriptedModel, "generate"),
    "saved": lambda: after(RunningJob, "checkpoint"),
    "storing": lambda: after(claims, "insert"),
    "naming": lambda: after(claims, "insert_for_topic"),
    "marking": lambda: after(description_queue, "mark"),
    "stored": lambda: after(ModelClaims, "_store"),
    "ending": lambda: before(jobs, "finish"),
    "undoing": lambda: after(claims, "delete"),
    "unnaming": lambda: after(claims, "delete_topic_claims_of_job"),
    "unmarking": lambda: after(description_queue, "unmark"),
}


def go_through(model_claims: ModelClaims) -> Job:
    """Whatever of it was done before: submit and wait."""
    model_claims.start()
    found, _ = model_claims.jobs.list(ANN, limit=1)
    job = found[0] if found else model_claims.submit(ANN, session="s", limit=10)
    done = model_claims.jobs.wait(job.id, PATIENCE_S)
    assert done.status is JobStatus.COMPLETED, done
    return done


def run(point: str, folder: Path) -> None:
    engine = MemoryEngine.open(Settings(data_dir=folder), FakeEmbedder())
    engine.warm_up()
    Agent(engine, KnowledgeServices.open(engine)).tell(MOVED, WORKS)
    model_claims = ModelClaims(engine, MODEL, Settings(data_dir=folder))
    POINTS[point]()
    model_claims.undo(ANN, go_through(model_claims).id)


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    kill_at(POINTS, run)
