"""A process for kill tests: erases or deletes an agent and prints a line for each deleted batch.

python -m tests.memories.erasure.erasing_process DATA_DIR erase|delete
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from threading import Event

import structlog

from souvenir.core.settings import Settings
from souvenir.jobs.worker import Jobs
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.erasure import Erasure
from souvenir.memories.removals import Removals
from souvenir.store.admin.jobs import ERASE
from souvenir.store.selection import Chooses, Selection
from tests.conversations.talk import ANN
from tests.fake_embedder import FakeEmbedder
from tests.memories.erasure.conftest import no_jobs


def tell_of_parts(engine: MemoryEngine) -> None:
    remove = engine.models.remove

    def telling(work):
        step = remove(work)
        os.write(1, b"a part went\n")
        return step

    setattr(engine.models, "remove", telling)  # noqa: B010 - a method is replaced for this process only


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    engine = MemoryEngine.open(Settings(data_dir=Path(sys.argv[1])), FakeEmbedder())
    tell_of_parts(engine)
    removals = Removals(engine, on_jobs_gone=no_jobs)
    if sys.argv[2] == "delete":
        removals.remove(ANN, Chooses.AGENT)
    else:
        erasing = Erasure(engine, on_jobs_gone=no_jobs)
        jobs = Jobs(engine, [erasing], queue_max=10, retention_days=1, lane=ERASE)
        with removals.working() as work:
            selection = Selection(ANN.namespace, Chooses.AGENT, ANN.namespace)
            parameters = erasing.begin([selection], work, backups=True)
            jobs.submit(Erasure.kind, ANN, parameters, job_id=work)
            jobs.start()
            Event().wait()
