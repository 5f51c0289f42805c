"""A process to be killed: it sends numbered messages under idempotency keys and reports which it stored.

    python -m tests.conversations.sending_process DATA_DIR

A line holds a number and the id of its message, and is printed once `add` has returned.
"""

from __future__ import annotations

import logging
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import structlog

from souvenir.conversations.messages import Conversations
from souvenir.core.settings import Settings
from souvenir.memories.engine import MemoryEngine
from souvenir.store.idempotency import Once
from tests.conversations.talk import ANN, draft
from tests.fake_embedder import FakeEmbedder

SENDERS = 4


def send(conversations: Conversations, sender: int) -> None:
    for number in count(sender, SENDERS):
        once = Once.of("send", f"key {number}", number)
        [stored] = conversations.add(ANN, [draft(f"number {number}")], once=once)
        os.write(1, f"{number} {stored.uid}\n".encode())


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    opened = Conversations(MemoryEngine.open(Settings(data_dir=Path(sys.argv[1])), FakeEmbedder()))
    with ThreadPoolExecutor(SENDERS) as senders:
        list(senders.map(send, [opened] * SENDERS, range(SENDERS)))
