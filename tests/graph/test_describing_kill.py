"""A job that asks a model and whose process is killed at any point claims once or not at all, and can be undone."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from memory_engine import MemoryEngine
from souvenir.graph.model_claims import Describing
from souvenir.settings import Settings
from tests.fake_embedder import FakeEmbedder
from tests.graph.describe import ANN, stored, waiting
from tests.graph.describing_process import MODEL, POINTS, go_through
from tests.killing import ROOT

PATIENCE_S = 300.0
CLAIMED = [("relation", "alice", "lives_in", "lisbon"), ("kind", "heron", "company", None)]


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each point, as the process that was killed there left it."""
    folder = tmp_path_factory.mktemp("killed")
    command = [sys.executable, "-m", "tests.graph.describing_process", str(folder)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    assert said.stdout.splitlines() == [f"{point}|killed" for point in POINTS], said.stderr
    return folder


@pytest.mark.parametrize("point", POINTS)
def test_a_job_that_was_killed_claims_once_or_not_at_all(killed: Path, point: str):
    settings = Settings(data_dir=killed / str(list(POINTS).index(point)))
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        engine.warm_up()
        assert list(engine.check()) == []
        assert (stored(engine), waiting(engine)) in (([], 2), (CLAIMED, 0))
        with closing(Describing(engine, MODEL, settings)) as describing:
            job = go_through(describing)
            assert (stored(engine), waiting(engine)) == (CLAIMED, 0)
            assert (job.result or {})["claims"] == {"kind": 1, "relation": 1}
            describing.undo(ANN, job.id)
        assert (stored(engine), waiting(engine)) == ([], 2)
        assert list(engine.check()) == []
