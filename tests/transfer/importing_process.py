"""A process to be killed: it runs the imports of a folder and reports the count of memories after each write.

python -m tests.transfer.importing_process DATA_DIR
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from threading import Event

import structlog

from souvenir.memories.engine import MemoryEngine
from tests.transfer.stores import open_store


class Telling(MemoryEngine):
    """Says how many memories there are after each write."""

    def write(self, scope, work):
        done = super().write(scope, work)
        os.write(1, f"{self.count(scope)}\n".encode())
        return done


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    with open_store(Path(sys.argv[1]), engine_class=Telling):
        Event().wait()
