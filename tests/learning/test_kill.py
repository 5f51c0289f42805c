"""An extraction whose process is killed at any point is applied once or not at all, and loses no fact."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from souvenir.core.ledger import FactStage, Phase
from souvenir.core.settings import Settings
from souvenir.memories.engine import MemoryEngine
from tests.fake_embedder import FakeEmbedder
from tests.forking import completed
from tests.learning.dumps import dump, history
from tests.learning.dying_process import POINTS, STORED, go_through, is_of_undo, learning_over
from tests.learning.ledgers import ANN, extraction, ledger, living

LEARNED = ["Ann moved to Bergen", "The tea is black", "The harbour opens at nine"]
OF_THE_JOB = Counter({"supersede": 1, "superseded": 1, "retracted": 1, "add": 2})


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each point, as the process that was killed there left it."""
    folder = tmp_path_factory.mktemp("killed")
    said = completed(["-m", "tests.learning.dying_process", str(folder)], os.environ)
    assert said.stdout.splitlines() == [f"{point}|killed" for point in POINTS], said.stderr
    return folder


@pytest.mark.parametrize("point", POINTS)
def test_a_job_that_was_killed_is_applied_once_or_not_at_all(killed: Path, point: str):
    settings = Settings(data_dir=killed / str(list(POINTS).index(point)))
    was = (settings.data_dir / "before.txt").read_text()
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        engine.warm_up()
        assert list(engine.check()) == []
        assert_whole(engine, was)
        with closing(learning_over(engine, settings)) as learning:
            learning.start()
            job = go_through(learning, undo=False)
            if extraction(engine, job.id).phase is Phase.UNDONE:
                assert is_of_undo(point)
                assert repr(dump(engine)) == was
                return
            assert sorted(living(engine)) == sorted([*LEARNED, "The tea is green"])
            changes = [one for one in history(engine) if one[3] is not None]
            assert Counter(action for _, action, _, _ in changes) == OF_THE_JOB
            assert {job_id for *_, job_id in changes} == {job.id}
            rows = ledger(engine, job.id)
            assert [row.stage for row in rows] == [FactStage.APPLIED] * 4
            made = {row.memory_id for row in rows if row.memory_id is not None}
            assert made == {id_ for id_, action, _, _ in changes if action in ("add", "supersede")}
            go_through(learning, undo=True)
        assert repr(dump(engine)) == was
        assert list(engine.check()) == []


def assert_whole(engine: MemoryEngine, was: str) -> None:
    """All of a job's changes are there, or none."""
    changes = Counter(action for _, action, _, job_id in history(engine) if job_id is not None)
    with engine.namespace(ANN) as (connection, _):
        phases = [phase for (phase,) in connection.execute("SELECT phase FROM extractions")]
    if Phase.APPLIED.value in phases:
        assert changes == OF_THE_JOB
    else:
        assert changes == Counter() or phases == [Phase.UNDONE.value]
        assert repr(dump(engine)) == was
        assert sorted(living(engine)) == sorted(STORED)
