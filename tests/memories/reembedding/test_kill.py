"""A process killed during re-embedding loses nothing and uses either the old or the new model."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import pytest

from souvenir.core.types import Scope, SearchQuery
from souvenir.jobs.worker import Jobs
from souvenir.memories.reembedding import Reembedding
from souvenir.store.admin.jobs import REEMBED, JobStatus
from tests.jobs.handlers import PATIENCE_S
from tests.killing import lines_until_killed
from tests.memories.reembedding.conftest import models_of_vectors
from tests.memories.reembedding.embedders import make_any
from tests.memories.reembedding.reembedding_process import opened
from tests.thoroughness import sampled

PROCESS = "tests.memories.reembedding.reembedding_process"
ROUNDS = sampled(2, 4)


def test_a_repeatedly_killed_reembedding_loses_nothing_and_ends(tmp_path: Path):
    chance, answered = random.Random(8900), list[str]()
    for number in range(ROUNDS):
        answered += lines_until_killed(PROCESS, tmp_path, f"round{number}", lines=chance.randrange(15, 80))
        with closing(opened(tmp_path)) as engine:
            engine.warm_up()
            assert list(engine.check()) == []
            assert set(answered) <= {memory.text for memory in engine.page(Scope(), offset=0, limit=10_000).memories}
            found = engine.search(Scope(), SearchQuery(answered[-1], hybrid=False)).hits[0]
            assert found.parts.similarity == pytest.approx(1.0, abs=1e-5)
    with closing(opened(tmp_path)) as engine:
        engine.warm_up()
        handler = Reembedding(engine, make_any, lambda embedder: None)
        with closing(Jobs(engine, [handler], queue_max=100, retention_days=1, lane=REEMBED)) as jobs:
            jobs.start()
            found_jobs, total = jobs.list(Scope(), limit=100)
            assert total == 6 * ROUNDS
            ended = [jobs.wait(job.id, PATIENCE_S) for job in found_jobs]
            assert {job.status for job in ended} == {JobStatus.COMPLETED}
        assert models_of_vectors(engine) == {"fake@1": engine.stats(Scope()).passages}
        assert list(engine.check()) == []
