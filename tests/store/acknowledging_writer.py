"""A process for kill tests: writes from several threads and prints acknowledged operations to standard output.

    python -m tests.store.acknowledging_writer DATA_DIR ROUND

A line is `doing VERB TEXT` before an operation and `done VERB ID TEXT` after its answer, written atomically.
"""

from __future__ import annotations

import logging
import os
import sys
from itertools import count
from pathlib import Path
from threading import Thread

import structlog

from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, MemoryPatch, Scope
from souvenir.memories.engine import MemoryEngine
from tests.fake_embedder import FakeEmbedder

WRITERS = 4


def say(*words: object) -> None:
    os.write(1, (" ".join(map(str, words)) + "\n").encode())


def write(engine: MemoryEngine, name: str) -> None:
    """Add memories; change every third one, and delete every fourth."""
    scope = Scope()
    for number in count():
        text = f"{name}-{number}"
        [memory_id] = engine.add_batch(scope, [MemoryDraft(f"{text} as it was said", "kill")])
        say("done", "add", memory_id, text)
        if number % 3 == 0:
            say("doing", "change", memory_id, text)
            engine.update(scope, memory_id, MemoryPatch(text=f"{text} as it was changed " + "at length " * 200))
            say("done", "change", memory_id, text)
        if number % 4 == 0:
            say("doing", "delete", memory_id, text)
            engine.delete(scope, memory_id)
            say("done", "delete", memory_id, text)


def keep(engine: MemoryEngine) -> None:
    while True:
        engine.snapshot()


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    opened = MemoryEngine.open(Settings(data_dir=Path(sys.argv[1])), FakeEmbedder())
    opened.warm_up()
    threads = [Thread(target=write, args=(opened, f"{sys.argv[2]}w{writer}")) for writer in range(WRITERS)]
    for thread in [*threads, Thread(target=keep, args=(opened,))]:
        thread.start()
