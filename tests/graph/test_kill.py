"""A process that is killed while its graph fills leaves one that goes on to what a rebuild from the messages makes."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

from memory_engine import MemoryEngine
from souvenir.graph.parts import GraphParts
from souvenir.settings import Settings
from souvenir.store import unread
from tests.fake_embedder import FakeEmbedder
from tests.graph.filling_process import ANN
from tests.graph.test_filling import read_anew, whole
from tests.killing import lines_until_killed

PROCESS = "tests.graph.filling_process"
ROUNDS = 3


def test_a_graph_whose_filling_is_killed_again_and_again_is_that_of_its_messages(tmp_path: Path) -> None:
    chance, waiting = random.Random(8900), list[int]()
    for number in range(ROUNDS):
        assert lines_until_killed(PROCESS, tmp_path, str(number), lines=chance.randrange(10, 60))
        with closing(MemoryEngine.open(Settings(data_dir=tmp_path), FakeEmbedder())) as engine:
            graph = GraphParts.open(engine)
            assert list(engine.check()) == []
            with engine.namespace(ANN) as (connection, namespace):
                assert namespace is not None
                waiting.append(unread.count(connection, namespace.id))
            if number == ROUNDS - 1:
                graph.filling.catch_up()
                filled = whole(engine)
                assert filled["mentions"]
                read_anew(engine, graph)
                assert whole(engine) == filled
                assert list(engine.check()) == []
    assert any(waiting), "it was never killed in the middle"
