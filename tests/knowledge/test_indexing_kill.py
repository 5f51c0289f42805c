"""After a process is killed during indexing, the graph completes to the result of a full rebuild."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

from souvenir.core.settings import Settings
from souvenir.knowledge.services import KnowledgeServices
from souvenir.memories.engine import MemoryEngine
from souvenir.store.graph import mention_queue
from tests.fake_embedder import FakeEmbedder
from tests.killing import lines_until_killed
from tests.knowledge.agent import ANN, Agent
from tests.knowledge.test_graph_indexer import check_rebuild, whole

PROCESS = "tests.knowledge.indexing_process"
ROUNDS = 3


def test_a_graph_is_correct_after_repeated_kills_of_the_indexer(tmp_path: Path) -> None:
    chance, waiting = random.Random(8900), list[int]()
    for number in range(ROUNDS):
        assert lines_until_killed(PROCESS, tmp_path, str(number), lines=chance.randrange(10, 30))
        with closing(MemoryEngine.open(Settings(data_dir=tmp_path), FakeEmbedder())) as engine:
            assert list(engine.check()) == []
            with engine.namespace(ANN) as (connection, namespace):
                assert namespace is not None
                waiting.append(mention_queue.count(connection, namespace.id))
            if number == ROUNDS - 1:
                ann = Agent(engine, KnowledgeServices.open(engine))
                check_rebuild(ann)
                assert whole(ann)["mentions"]
    assert any(waiting), "it was never killed in the middle"
