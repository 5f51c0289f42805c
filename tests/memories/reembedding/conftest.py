"""An engine with the fake model, and re-embedding jobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from souvenir.core.settings import Settings
from souvenir.core.types import DEFAULT_NAMESPACE, Embedder, Memory, MemoryDraft, Scope, SearchQuery
from souvenir.jobs.worker import Jobs
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.reembedding import MakeEmbedder, Reembedding
from souvenir.models.embedding.specs import ModelSpec
from souvenir.store.admin.jobs import REEMBED, Job
from tests.jobs.handlers import PATIENCE_S
from tests.memories.reembedding.embedders import make_any

DEFAULT = Scope()
QUERIES = ("red apple", "green garden", "the violin of ann", "word3 word4 word5")
Reembed = Callable[[ModelSpec], Job]
OpenJobs = Callable[..., Jobs]


@pytest.fixture
def open_jobs(engine: MemoryEngine) -> Iterator[OpenJobs]:
    with ExitStack() as opened:

        def open_them(make: MakeEmbedder = make_any, adopt: Callable[[object], None] = lambda embedder: None) -> Jobs:
            handler = Reembedding(engine, make, adopt)
            jobs = opened.enter_context(closing(Jobs(engine, [handler], queue_max=10, retention_days=1, lane=REEMBED)))
            jobs.start()
            return jobs

        yield open_them


@pytest.fixture
def reembed(open_jobs: OpenJobs) -> Reembed:
    """Change the model and wait for the end of the job."""
    jobs = open_jobs()

    def run(spec: ModelSpec) -> Job:
        return jobs.wait(jobs.submit("reembed", DEFAULT, {"spec": spec.to_json()}).id, PATIENCE_S)

    return run


def answers(engine: MemoryEngine, namespace: str = DEFAULT_NAMESPACE) -> list[object]:
    """Return search results with all score parts."""
    found: list[object] = []
    for text in QUERIES:
        for hybrid in (True, False):
            result = engine.search(Scope(namespace), SearchQuery(text, hybrid=hybrid, top_k=10))
            assert result.degraded == ()
            # A fresh store has other ids and times, which a score may depend on in its last digits only.
            found.append(
                [(hit.memory.text, round(hit.score, 5), round(hit.parts.similarity, 5)) for hit in result.hits]
            )
    return found


def answers_of_a_fresh_store(folder: Path, embedder: Embedder, engine: MemoryEngine, namespace: str) -> list[object]:
    """Return the results of a new store with an engine's memories that used this model from the start."""
    with closing(MemoryEngine.open(Settings(data_dir=folder), embedder)) as fresh:
        fresh.warm_up()
        page = engine.page(Scope(namespace), offset=0, limit=100_000)
        for memory in page.memories:
            fresh.add_batch(Scope(namespace), [draft_of(memory)])
        return answers(fresh, namespace)


def draft_of(memory: Memory) -> MemoryDraft:
    return MemoryDraft(memory.text, memory.source, archived=memory.archived)


def models_of_vectors(engine: MemoryEngine) -> dict[str, int]:
    """Return the number of vectors of each model."""
    with engine.namespace(DEFAULT) as (connection, _):
        counted = connection.execute("SELECT model_id, count(*) FROM vectors GROUP BY model_id")
        return {str(model_id): int(str(count)) for model_id, count in counted}


def fill(engine: MemoryEngine, count: int, scope: Scope = DEFAULT) -> None:
    texts = [f"{QUERIES[number % 3]} word{number % 11} number{number}" for number in range(count)]
    engine.add_batch(scope, [MemoryDraft(text, f"source/{number % 5}") for number, text in enumerate(texts)])
