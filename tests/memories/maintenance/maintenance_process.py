"""A process for kill tests: runs the jobs of a folder in small steps and prints the progress after each write.

python -m tests.memories.maintenance.maintenance_process DATA_DIR
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from threading import Event

import structlog

from souvenir.core.settings import Settings
from souvenir.memories import retention
from souvenir.memories.engine import MemoryEngine
from tests.fake_embedder import FakeEmbedder
from tests.memories.maintenance.aged import jobs_over, merging_over


class Telling(MemoryEngine):
    """Prints the numbers of active and archived memories after each write."""

    def write(self, scope, work):
        done = super().write(scope, work)
        with self.namespace(scope) as (connection, _):
            rows = connection.execute("SELECT sum(1 - archived), sum(archived) FROM memories").fetchall()
        os.write(1, f"{rows[0][0]} {rows[0][1]}\n".encode())
        return done


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    retention.LOOKED_AT_ONCE = retention.DELETED_AT_ONCE = 4
    engine = Telling.open(Settings(data_dir=Path(sys.argv[1])), FakeEmbedder())
    engine.warm_up()
    lanes = jobs_over(engine), merging_over(engine)
    for jobs in lanes:
        jobs.start()
    Event().wait()
