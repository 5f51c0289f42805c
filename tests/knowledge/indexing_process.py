"""A process to be killed: it stores, edits and deletes messages while its graph is indexed.

    python -m tests.knowledge.indexing_process DATA_DIR ROUND

A line is printed for each message once it is stored.
"""

from __future__ import annotations

import logging
import os
import random
import sys
from itertools import count
from pathlib import Path

import structlog

from souvenir.conversations.messages import Conversations
from souvenir.core.settings import Settings
from souvenir.core.types import MessageRole
from souvenir.knowledge.services import KnowledgeServices
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.removals import Removals
from souvenir.store.messages.messages import MessageDraft
from souvenir.store.selection import Chooses
from tests.fake_embedder import FakeEmbedder
from tests.knowledge.agent import ANN

NAMES = ("Alice", "Boris", "Chloe", "Dmitri", "Elena")
PLACES = ("Lisbon", "Oslo", "Quito", "Riga")


def text(chance: random.Random) -> str:
    return f"Yesterday I met {chance.choice(NAMES)} and {chance.choice(NAMES)} in {chance.choice(PLACES)}."


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    opened = MemoryEngine.open(Settings(data_dir=Path(sys.argv[1])), FakeEmbedder())
    opened.warm_up()
    graph, conversations = KnowledgeServices.open(opened), Conversations(opened)
    removals = Removals(opened, on_jobs_gone=lambda: None)
    removals.start()
    graph.start()
    choose, said = random.Random(sys.argv[2]), list[str]()
    for number in count():
        draft = MessageDraft(MessageRole.USER, text(choose), session_id=f"session-{number // 20}")
        said += [one.uid for one in conversations.add(ANN, [draft] * 8)]
        if number % 3 == 2:
            conversations.edit(ANN, said[choose.randrange(len(said))], content=text(choose))
            removals.remove(ANN, Chooses.MESSAGE, said.pop(choose.randrange(len(said))))
        os.write(1, f"{number}\n".encode())
