"""A job whose process is killed repeatedly does each step of its work exactly once."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

from souvenir.core.settings import Settings
from souvenir.core.types import Scope
from souvenir.jobs.worker import Jobs
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin.jobs import JobStatus
from tests.fake_embedder import FakeEmbedder
from tests.jobs.handlers import PATIENCE_S, Storing
from tests.jobs.storing_process import UNTIL
from tests.killing import lines_until_killed
from tests.thoroughness import sampled

PROCESS = "tests.jobs.storing_process"
ROUNDS = sampled(2, 4)


def test_a_job_that_is_killed_again_and_again_stores_each_memory_once(tmp_path: Path):
    chance, stored = random.Random(8900), 0
    for _ in range(ROUNDS):
        now_stored = int(lines_until_killed(PROCESS, tmp_path, lines=chance.randrange(20, 60))[-1])
        assert stored < now_stored < UNTIL
        stored = now_stored
    with closing(MemoryEngine.open(Settings(data_dir=tmp_path), FakeEmbedder())) as engine:
        engine.warm_up()
        with closing(Jobs(engine, [Storing(engine)], queue_max=10, retention_days=1)) as jobs:
            [job], _ = jobs.list(Scope(), limit=10)
            assert stored <= job.done == engine.count(Scope()) < UNTIL
            assert job.status is JobStatus.RUNNING
            jobs.start()
            assert jobs.wait(job.id, PATIENCE_S).result == {"stored": UNTIL}
        page = engine.page(Scope(), offset=0, limit=10_000)
        expected = [f"stored by the job, number {number}" for number in range(1, UNTIL + 1)]
        assert [memory.text for memory in page.memories] == expected
        assert list(engine.check()) == []
