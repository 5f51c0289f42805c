"""Repeatedly killed maintenance jobs change each memory exactly once."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, Origin
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.extraction_profiles import ExtractionProfiles
from tests.fake_embedder import FakeEmbedder
from tests.jobs.handlers import PATIENCE_S
from tests.killing import lines_until_killed
from tests.memories.engine.verbs import DEFAULT, stored
from tests.memories.maintenance.aged import NOW, aged_all, days_ago, jobs_over, merging_over

PROCESS = "tests.memories.maintenance.maintenance_process"
ROUNDS = 2
OLD, YOUNG = 400, 40


def prepared(data_dir: Path, kind: str, parameters: dict[str, str], *, archived: bool) -> str:
    """Prepare a store with old and young memories and a queued job; return its id."""
    with closing(MemoryEngine.open(Settings(data_dir=data_dir), FakeEmbedder())) as engine:
        engine.warm_up()
        ExtractionProfiles(engine).put(DEFAULT, "wip/", {"ttl_days": 90})
        old, young = (Origin(days_ago(days), days_ago(days)) for days in (200, 10))
        drafts = [MemoryDraft(f"text {n}", f"wip/{n % 7}", archived=archived) for n in range(OLD + YOUNG)]
        aged_all(engine, [(draft, old if n < OLD else young) for n, draft in enumerate(drafts)])
        with closing(jobs_over(engine)) as jobs:
            return jobs.submit(kind, DEFAULT, parameters).id


def killed_again_and_again(data_dir: Path, column: int) -> None:
    """:param column: Of what the process says, the one that falls with each step."""
    chance, left = random.Random(8900), OLD + YOUNG
    for _ in range(ROUNDS):
        last = lines_until_killed(PROCESS, data_dir, lines=chance.randrange(5, 20))[-1]
        now_left = int(last.split()[column])
        assert YOUNG < now_left < left
        left = now_left


def test_a_repeatedly_killed_pruning_counts_each_memory_once(tmp_path: Path):
    before = {"before": days_ago(90).isoformat()}
    job_id = prepared(tmp_path, "prune", before, archived=True)
    killed_again_and_again(tmp_path, 1)
    with closing(MemoryEngine.open(Settings(data_dir=tmp_path), FakeEmbedder())) as engine:
        engine.warm_up()
        with closing(jobs_over(engine)) as jobs:
            jobs.start()
            assert jobs.wait(job_id, PATIENCE_S).result == {"candidates": OLD, "pruned": OLD}
        assert len(stored(engine)) == YOUNG
        assert len(engine.backups()) == int(engine.keeps_backups)
        assert list(engine.check()) == []


def test_a_repeatedly_killed_enforcement_archives_each_memory_once(tmp_path: Path):
    job_id = prepared(tmp_path, "enforce_policies", {"at": NOW.isoformat()}, archived=False)
    killed_again_and_again(tmp_path, 0)
    with closing(MemoryEngine.open(Settings(data_dir=tmp_path), FakeEmbedder())) as engine:
        engine.warm_up()
        with closing(jobs_over(engine)) as jobs:
            jobs.start()
            result = jobs.wait(job_id, PATIENCE_S).result
        assert result is not None
        assert result["summary"]["candidates_scanned"] == OLD + YOUNG
        assert result["summary"]["archived"] == OLD == len([one for one in stored(engine) if one.archived])
        with engine.namespace(DEFAULT) as (connection, _):
            times = connection.execute(
                "SELECT count(*), count(DISTINCT memory_id) FROM history WHERE action = 'archive'"
            )
            assert times.fetchone() == (OLD, OLD)
        assert list(engine.check()) == []


def test_a_repeatedly_killed_consolidation_merges_each_cluster_once(tmp_path: Path):
    clusters = 20
    stem = " ".join(f"common{number}" for number in range(10))
    with closing(MemoryEngine.open(Settings(data_dir=tmp_path), FakeEmbedder())) as engine:
        engine.warm_up()
        drafts = [MemoryDraft(f"{stem} {word}", f"s{n:02}") for n in range(clusters) for word in ("one", "two")]
        engine.add_batch(DEFAULT, drafts)
        with closing(merging_over(engine)) as jobs:
            job_id = jobs.submit("consolidate", DEFAULT, {"source_prefix": ""}).id
    left = 2 * clusters
    for lines in (3, 5):
        now_left = int(lines_until_killed(PROCESS, tmp_path, lines=lines)[-1].split()[0])
        assert clusters < now_left < left
        left = now_left
    with closing(MemoryEngine.open(Settings(data_dir=tmp_path), FakeEmbedder())) as engine:
        engine.warm_up()
        with closing(merging_over(engine)) as jobs:
            jobs.start()
            result = jobs.wait(job_id, PATIENCE_S).result
        assert result is not None
        assert (len(result["merged"]), result["skipped"], result["has_more"]) == (clusters, [], False)
        assert [one.archived for one in stored(engine)] == [True] * 2 * clusters + [False] * clusters
        assert len(engine.backups()) == int(engine.keeps_backups)
        assert list(engine.check()) == []
