"""Token vectors that are missing are made by a job; until then searches do without late interaction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from souvenir.core.passages import LATE_PROFILES
from souvenir.core.settings import Settings
from souvenir.core.stored_json import to_json
from souvenir.core.types import MemoryDraft, Profile, SearchQuery
from souvenir.jobs.worker import Jobs
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.reembedding import PASSAGES_AT_ONCE, Reembedding
from souvenir.models.embedding.specs import ModelSpec
from souvenir.retrieval.profiles import PROFILES
from souvenir.store import vectors
from souvenir.store.admin.jobs import REEMBED, JobStatus
from tests.fake_embedder import FakeEmbedder, FakeTokenEmbedder
from tests.jobs.handlers import PATIENCE_S
from tests.memories.reembedding.conftest import DEFAULT, QUERIES, answers, answers_of_a_fresh_store, fill
from tests.memories.reembedding.embedders import FAKE
from tests.store.damage import overwrite

COUNT = 150
"""More passages than one step of the job makes."""


def test_profiles_with_late_interaction_are_those_with_token_vectors():
    assert {profile for profile in Profile if PROFILES[profile].late is not None} == LATE_PROFILES


def test_missing_token_vectors_are_made_by_a_job(tmp_path: Path):
    settings = Settings(data_dir=tmp_path / "data")
    with opened(settings, FakeEmbedder()) as engine:
        fill(engine, COUNT)
        engine.add(DEFAULT, MemoryDraft("a long document " + "at length " * 100, "long"))
        without = answers(engine)
    with opened(settings, FakeTokenEmbedder()) as engine:
        assert (answers(engine), has_late(engine)) == (without, False)
        engine.snapshot()
        assert completed(engine) == [COUNT]
        assert has_late(engine)
        again = answers(engine)
        assert again == answers_of_a_fresh_store(tmp_path / "fresh", FakeTokenEmbedder(), engine, "default")
        assert list(engine.check()) == []
        assert completed(engine) == []
    with opened(settings, FakeTokenEmbedder()) as engine:  # its snapshot is from before the job
        assert answers(engine) == again
        assert list(engine.check()) == []
    with opened(settings, FakeEmbedder()) as engine:
        assert answers(engine) == without
        assert completed(engine) == []


@pytest.mark.sqlite_only(reason="damages the file")
def test_passages_that_cannot_be_read_do_not_stop_the_job(tmp_path: Path):
    settings = Settings(data_dir=tmp_path)
    with opened(settings, FakeEmbedder()) as engine:
        fill(engine, COUNT)
    damaged = PASSAGES_AT_ONCE + 1
    overwrite(settings.database_path, "passages", "text", "CAST(x'ff' AS TEXT)", where=f"id <= {damaged}")
    with opened(settings, FakeTokenEmbedder()) as engine:
        assert completed(engine) == [COUNT - damaged]
        with engine.namespace(DEFAULT) as (connection, _):
            missing = vectors.missing(connection, "another", after=0, limit=PASSAGES_AT_ONCE)
        assert missing[0][0] == damaged + 1


def test_a_new_store_needs_no_job(tmp_path: Path):
    with opened(Settings(data_dir=tmp_path), FakeTokenEmbedder()) as engine:
        assert completed(engine) == []
        fill(engine, 5)
        assert completed(engine) == []
        assert has_late(engine)


@contextmanager
def opened(settings: Settings, embedder: FakeEmbedder) -> Iterator[MemoryEngine]:
    with closing(MemoryEngine.open(settings, embedder, model_spec=to_json(FAKE.to_json()))) as engine:
        yield engine


def completed(engine: MemoryEngine) -> list[int]:
    """Return how many passages each submitted job embedded."""
    handler = Reembedding(engine, lambda spec: FakeTokenEmbedder(), lambda embedder: None)
    embedded: list[int] = []
    with closing(Jobs(engine, [handler], queue_max=10, retention_days=1, lane=REEMBED)) as jobs:
        jobs.start()

        def submit(spec: ModelSpec) -> None:
            job = jobs.wait(jobs.submit(REEMBED, DEFAULT, {"spec": spec.to_json()}).id, PATIENCE_S)
            assert (job.status, job.error) == (JobStatus.COMPLETED, None)
            assert job.result is not None
            embedded.append(job.result["embedded"])

        handler.complete(submit)
    return embedded


def has_late(engine: MemoryEngine) -> bool:
    hits = engine.search(DEFAULT, SearchQuery(QUERIES[0], top_k=5)).hits
    assert len(hits) == 5
    return all("late" in hit.parts.parts for hit in hits)
