"""A model job that is killed at any point stores its claims once or not at all, and can be undone."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path

import pytest

from souvenir.core.settings import Settings
from souvenir.knowledge.model_claims import ModelClaims
from souvenir.memories.engine import MemoryEngine
from tests.fake_embedder import FakeEmbedder
from tests.forking import completed
from tests.knowledge.agent import ANN
from tests.knowledge.model_claims_process import MODEL, POINTS, go_through
from tests.knowledge.model_claims_setup import named, stored, waiting

CLAIMED = [("relation", "alice", "lives_in", "lisbon"), ("kind", "heron", "company", None)]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each point, as the process that was killed there left it."""
    folder = tmp_path_factory.mktemp("killed")
    said = completed(["-m", "tests.knowledge.model_claims_process", str(folder)], os.environ)
    assert said.stdout.splitlines() == [f"{point}|killed" for point in POINTS], said.stderr
    return folder


@pytest.mark.parametrize("point", POINTS)
def test_a_killed_job_stores_its_claims_once_or_not_at_all(killed: Path, point: str):
    settings = Settings(data_dir=killed / str(list(POINTS).index(point)))
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        engine.warm_up()
        assert list(engine.check()) == []
        assert (stored(engine), named(engine), waiting(engine)) in (([], [], 2), (CLAIMED, ["Life of Alice"], 0))
        with closing(ModelClaims(engine, MODEL, settings)) as model_claims:
            job = go_through(model_claims)
            assert (stored(engine), named(engine), waiting(engine)) == (CLAIMED, ["Life of Alice"], 0)
            assert (job.result or {})["claims"] == {"kind": 1, "relation": 1, "topic_name": 1}
            model_claims.undo(ANN, job.id)
        assert (stored(engine), named(engine), waiting(engine)) == ([], [], 2)
        assert list(engine.check()) == []
