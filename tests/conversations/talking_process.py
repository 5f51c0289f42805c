"""A process to be killed: its manager gets concurrent messages and reports on standard output which it stored.

    python -m tests.conversations.talking_process DATA_DIR ROUND

A line is printed once `add_to_session` has returned.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from itertools import count
from pathlib import Path

import structlog

from souvenir.conversations import MemoryManager
from souvenir.core.settings import Settings
from souvenir.memories.engine import MemoryEngine
from tests.fake_embedder import FakeEmbedder

SPEAKERS = 4


async def speak(manager: MemoryManager, name: str) -> None:
    for number in count():
        await manager.add_to_session("user", f"{name}-{number}")
        os.write(1, f"{name}-{number}\n".encode())


async def talk(engine: MemoryEngine, round_name: str) -> None:
    manager = MemoryManager.over(engine)
    await manager.initialize()
    await asyncio.gather(*(speak(manager, f"{round_name}s{speaker}") for speaker in range(SPEAKERS)))


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    opened = MemoryEngine.open(Settings(data_dir=Path(sys.argv[1])), FakeEmbedder())
    opened.warm_up()
    asyncio.run(talk(opened, sys.argv[2]))
