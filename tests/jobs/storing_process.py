"""A process to be killed: it runs the jobs of a folder and reports on standard output what is stored.

python -m tests.jobs.storing_process DATA_DIR
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from threading import Event

import structlog

from souvenir.core.settings import Settings
from souvenir.core.types import Scope
from souvenir.jobs.worker import Jobs
from souvenir.memories.engine import MemoryEngine
from tests.fake_embedder import FakeEmbedder
from tests.jobs.handlers import Storing

UNTIL = 400


class Telling(MemoryEngine):
    """Says how many memories there are after each write."""

    def write(self, scope, work):
        done = super().write(scope, work)
        os.write(1, f"{self.count(scope)}\n".encode())
        return done


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    engine = Telling.open(Settings(data_dir=Path(sys.argv[1])), FakeEmbedder())
    engine.warm_up()
    jobs = Jobs(engine, [Storing(engine)], queue_max=10, retention_days=1)
    if not jobs.list(Scope(), limit=1)[1]:
        jobs.submit("storing", Scope(), {"until": UNTIL})
    jobs.start()
    Event().wait()
