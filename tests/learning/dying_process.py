"""Kill a forked process at each named point of an extraction.

python -m tests.learning.dying_process FOLDER prints a line for each point: its name and how its fork ended.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import structlog

from souvenir.core.ledger import FactStage, Phase
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft
from souvenir.learning import undo as undoing
from souvenir.learning.application import Applying, Attempt
from souvenir.learning.extraction import Extraction, ExtractionRequest
from souvenir.learning.ledger import Ledger
from souvenir.memories.engine import MemoryEngine
from souvenir.models.llm.prompts import Prompt
from souvenir.store.admin import jobs
from souvenir.store.admin.jobs import Job, JobStatus
from souvenir.store.learning import extractions
from souvenir.store.transaction import Transaction
from tests.fake_embedder import FakeEmbedder
from tests.learning.dumps import dump
from tests.learning.ledgers import ANN, PATIENCE_S, SOURCE, extraction
from tests.learning.scripted_model import ScriptedModel, decision, model, shown

STORED = ("Ann lives in Oslo", "Ann has a red car", "The tea is green")
TURNS = ("Ann moved to Bergen", "Ann sold the red car", "The tea is black", "The harbour opens at nine")
SAID = "\n\n".join(f"user: {turn}" for turn in TURNS)
VERDICTS = {"moved": ("UPDATE", "Oslo"), "sold": ("DELETE", "car"), "black": ("CONFLICT", "green")}


def decide(prompt: Prompt) -> dict[str, Any]:
    memories, made = shown(prompt, "memories"), []
    for number, fact in shown(prompt, "facts").items():
        verdict, about = next((one for word, one in VERDICTS.items() if word in fact), ("ADD", ""))
        target = next((one for one, text in memories.items() if about and about in text), None)
        made.append(decision(number, verdict, target))
    return {"decisions": made}


def learning_over(engine: MemoryEngine, settings: Settings) -> Extraction:
    """No deletion without an approval."""
    return Extraction(engine, model(decide=decide), settings.model_copy(update={"extract_max_deletes": 0}))


def go_through(learning: Extraction, *, undo: bool) -> Job:
    """Whatever of it was done before: submit, wait, approve, wait, and undo if that is wanted."""
    found, _ = learning.jobs.list(ANN, limit=1)
    job = found[0] if found else learning.submit(ANN, ExtractionRequest(SAID, SOURCE))
    job = finished(learning, job)
    if job.result is not None and job.result.get("approval"):
        job = finished(learning, learning.ledger.approve(ANN, job.id))
    if undo and extraction(learning._engine, job.id).phase is not Phase.UNDONE:
        learning.ledger.undo(ANN, job.id)
    return job


def finished(learning: Extraction, job: Job) -> Job:
    done = learning.jobs.wait(job.id, PATIENCE_S)
    assert done.status is JobStatus.COMPLETED, done
    return done


Condition = Callable[..., bool]


def always(*_: Any, **__: Any) -> bool:
    return True


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def before(owner: Any, name: str, when: Condition = always) -> None:
    """Die when this is called."""
    call = getattr(owner, name)

    def dying(*arguments: Any, **named: Any) -> Any:
        if when(*arguments, **named):
            die()
        return call(*arguments, **named)

    setattr(owner, name, dying)


def after(owner: Any, name: str, when: Condition = always) -> None:
    """Die when this has been done."""
    call = getattr(owner, name)

    def dying(*arguments: Any, **named: Any) -> Any:
        result = call(*arguments, **named)
        if when(*arguments, **named):
            die()
        return result

    setattr(owner, name, dying)


def saves(stage: FactStage) -> Condition:
    return lambda connection, job_id, rows: any(row.stage is stage for row in rows)


def asks(name: str) -> Condition:
    return lambda self, prompt, shape: prompt.name == name


def reaches(phase: Phase) -> Condition:
    return lambda self, job, rows, calls, reached, **progress: reached is phase


POINTS: dict[str, Callable[[], None]] = {
    "submitting": lambda: after(extractions, "insert"),
    "submitted": lambda: after(Extraction, "submit"),
    "asking for facts": lambda: before(ScriptedModel, "generate", asks("propose")),
    "answered with facts": lambda: after(ScriptedModel, "generate", asks("propose")),
    "saving facts": lambda: after(extractions, "save_facts", saves(FactStage.PROPOSED)),
    "facts saved": lambda: after(Extraction, "_save", reaches(Phase.DECIDING)),
    "asking for decisions": lambda: before(ScriptedModel, "generate", asks("decide")),
    "saving decisions": lambda: after(extractions, "save_facts", saves(FactStage.DECIDED)),
    "decided": lambda: after(Extraction, "_save", reaches(Phase.DECIDED)),
    "finding that an approval is wanted": lambda: before(Applying, "_waiting"),
    "waiting for an approval": lambda: after(jobs, "finish"),
    "approving": lambda: after(jobs, "reopen"),
    "approved": lambda: after(Ledger, "approve"),
    "archiving what is updated": lambda: after(Transaction, "archive"),
    "linking what is new": lambda: after(Transaction, "link"),
    "all done, nothing committed": lambda: after(Attempt, "run"),
    "applied": lambda: after(Applying, "apply", lambda self, job, rows, **_: approved(self, job)),
    "finishing": lambda: after(jobs, "finish", lambda connection, job_id, *_, **__: was_applied(connection, job_id)),
    "undoing: what is new removed": lambda: after(Transaction, "delete"),
    "undoing: a memory put back": lambda: after(Transaction, "unarchive"),
    "undoing: nothing committed": lambda: after(undoing, "_undo"),
    "undone": lambda: after(Ledger, "undo"),
}


def approved(applying: Any, job: Any) -> bool:
    return "approved" in applying._extraction(job).options


def was_applied(connection: Any, job_id: str) -> bool:
    found = extractions.find(connection, job_id)
    return found is not None and found.phase is Phase.APPLIED


def is_of_undo(point: str) -> bool:
    return point.startswith("und")


def run(point: str, folder: Path) -> None:
    settings = Settings(data_dir=folder)
    engine = MemoryEngine.open(settings, FakeEmbedder())
    engine.warm_up()
    engine.add_batch(ANN, [MemoryDraft(text, SOURCE) for text in STORED])
    (folder / "before.txt").write_text(repr(dump(engine)))
    learning = learning_over(engine, settings)
    learning.start()
    POINTS[point]()
    go_through(learning, undo=True)


def kill_at(points: Iterable[str], run: Callable[[str, Path], None]) -> None:
    """Run each point in a fork, in a folder of its own, and print how it ended."""
    for number, point in enumerate(points):
        pid = os.fork()
        if pid == 0:
            try:
                run(point, Path(sys.argv[1]) / str(number))
            finally:
                os._exit(1)
        _, status = os.waitpid(pid, 0)
        killed = os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL
        print(f"{point}|{'killed' if killed else status}", flush=True)


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    kill_at(POINTS, run)
