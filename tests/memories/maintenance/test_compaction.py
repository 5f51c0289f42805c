"""Clusters of similar memories."""

from __future__ import annotations

import pytest

from souvenir.core.types import JsonObject, Scope
from souvenir.jobs.handler import AtOnce
from souvenir.memories.deduplication import Compaction
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin.jobs import JobStatus
from souvenir.store.memories.reads import CONFLICTS_WITH
from tests.jobs.conftest import OpenJobs
from tests.jobs.handlers import PATIENCE_S
from tests.memories.engine.verbs import DEFAULT, add, stored

# Ten words; with one more of its own, two texts have the cosine 10/11, about 0.91.
STEM, OTHER = (" ".join(f"{name}{number}" for number in range(10)) for name in ("common", "shared"))


def survey(engine: MemoryEngine, threshold: float = 0.85) -> JsonObject:
    return Compaction(engine).survey(DEFAULT, threshold=threshold, progress=AtOnce({}))


def test_a_cluster_is_a_memory_with_its_similar_ones(engine: MemoryEngine):
    first = [add(engine, f"{STEM} {word}", "a") for word in ("one", "two", "three")]
    second = [add(engine, f"{OTHER} {word}", "a") for word in ("one", "two")]
    add(engine, "nothing like it", "a")
    add(engine, STEM + " four", "b")
    before = stored(engine)
    found = survey(engine)
    near = pytest.approx(10 / 11, abs=1e-6)
    assert found == {
        "clusters": 2,
        "memories": 5,
        "shown": [
            {"source": "a", "count": 3, "similarity": near, "ids": first},
            {"source": "a", "count": 2, "similarity": near, "ids": second},
        ],
    }
    assert survey(engine, 0.95)["clusters"] == 0
    assert stored(engine) == before


def test_unmergeable_memories_are_in_no_cluster(engine: MemoryEngine):
    plain = [add(engine, f"{STEM} {word}", "a") for word in ("one", "two")]
    add(engine, STEM + " pinned", "a", pinned=True)
    add(engine, STEM + " archived", "a", archived=True)
    add(engine, STEM + " keyed", "a", key="k")
    flagger, other = (add(engine, f"{STEM} {word}", "a") for word in ("yes", "no"))
    engine.write(DEFAULT, lambda tx: tx.link(flagger, other, CONFLICTS_WITH))
    assert [cluster["ids"] for cluster in survey(engine)["shown"]] == [plain]


def test_clusters_are_listed_up_to_a_limit_and_all_counted(engine: MemoryEngine):
    for source in range(60):
        for word in ("one", "two"):
            add(engine, f"{STEM} {word}", f"source {source:02}")
    for number in range(25):
        add(engine, f"{STEM} n{number}", "many")
    found = survey(engine)
    assert (found["clusters"], found["memories"], len(found["shown"])) == (61, 145, 50)
    assert (found["shown"][0]["count"], len(found["shown"][0]["ids"])) == (25, 20)


def test_a_job_lists_clusters_and_an_unknown_namespace_has_none(engine: MemoryEngine, open_jobs: OpenJobs):
    ids = [add(engine, f"{STEM} {word}", "a") for word in ("one", "two")]
    jobs = open_jobs(Compaction(engine))
    done = jobs.wait(jobs.submit("compact", DEFAULT, {"threshold": 0.85}).id, PATIENCE_S)
    assert (done.status, done.done, done.total) == (JobStatus.COMPLETED, 2, 2)
    assert done.result is not None
    assert [cluster["ids"] for cluster in done.result["shown"]] == [ids]
    nobody = jobs.wait(jobs.submit("compact", Scope("nobody"), {"threshold": 0.85}).id, PATIENCE_S)
    assert nobody.result == {"clusters": 0, "memories": 0, "shown": []}
