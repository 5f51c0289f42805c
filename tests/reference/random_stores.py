"""Random stores, each searched by the engine and by the reference search, which must agree on every score.

    python -m tests.reference.random_stores                    10,000 stores: 20 minutes
    python -m tests.reference.random_stores --stores 200 --first 5000

A store is a namespace of a few memories with facts, tags, sources and times, of which some are changed and deleted
again. In turns it is searched as it is; by 8-bit codes first, as a large index is; and so from its snapshot, whose
vectors are left in the file. Every passage is a candidate: `make bench` measures what the cut of the candidates loses.
A failing store is named by its number.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from datetime import timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from unittest.mock import patch

from souvenir.core import array_file
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, MemoryPatch, Scope, SearchQuery
from souvenir.index import namespace, vector
from souvenir.index.analyser import Analyser
from souvenir.memories.engine import MemoryEngine
from tests.fake_embedder import FakeTokenEmbedder
from tests.memories.engine.drawn import MAY, METADATA, NOW, SCOPES, SOURCES, TAGS, TEXTS, make_query
from tests.reference.agreement import assert_equals_reference
from tests.reference.search import ReferenceSearch

QUERIES_EACH = 3
STORES_OF_AN_ENGINE = 250
"""After so many stores a new database begins."""

MODES = ("as it is", "by codes", "from its snapshot")


def run(stores: int, first: int = 0) -> int:
    """Return the number of compared searches.

    :raises AssertionError: If an answer differs; a note names the store.
    """
    reference, compared = ReferenceSearch(FakeTokenEmbedder(), Analyser()), 0
    for begin in range(first, first + stores, STORES_OF_AN_ENGINE):
        with TemporaryDirectory(prefix="souvenir-stores-") as folder, closing(_opened(Path(folder))) as engine:
            for number in range(begin, min(begin + STORES_OF_AN_ENGINE, first + stores)):
                mode = MODES[number % len(MODES)]
                try:
                    compared += _compare(engine, number, mode, reference)
                except AssertionError as error:
                    error.add_note(f"in store {number}, searched {mode}")
                    raise
    return compared


def _opened(folder: Path) -> MemoryEngine:
    return MemoryEngine.open(Settings(data_dir=folder, snapshot_interval_s=3600), FakeTokenEmbedder())


def _compare(engine: MemoryEngine, number: int, mode: str, reference: ReferenceSearch) -> int:
    """Fill a namespace, search it, and return how many searches agreed."""
    chance, name = Random(number), f"store-{number}"
    with _large(mode):
        _fill(engine, name, chance)
        if mode == "from its snapshot":
            engine.search(Scope(name), SearchQuery("loads the index"))
            engine.snapshot()
            registry = engine.models.serving.registry
            registry.drop(*registry.loaded())
        stored = engine.page(Scope(name), offset=0, limit=1000).memories
        passages = reference.passages.of_memories(stored)
        for _ in range(QUERIES_EACH):
            query, paths = make_query(chance), chance.choice(SCOPES)
            result = engine.search(Scope(name, sources=paths), query)
            assert_equals_reference(result, reference.rank(passages, query, NOW, paths=paths), query.top_k)
    return QUERIES_EACH


def _fill(engine: MemoryEngine, name: str, chance: Random) -> None:
    scope = Scope(name)
    added = engine.add_batch(scope, [_draft(chance) for _ in range(chance.randint(1, 40))])
    for memory_id in added[:: chance.randint(2, 9)]:
        match chance.randint(0, 3):
            case 0:
                engine.delete(scope, memory_id)
            case 1:
                engine.update(scope, memory_id, MemoryPatch(text=chance.choice(TEXTS)))
            case 2:
                engine.update(
                    scope, memory_id, MemoryPatch(archived=chance.random() < 0.5, source=chance.choice(SOURCES))
                )
            case 3:
                engine.update(scope, memory_id, MemoryPatch(document_at=MAY, tags=tuple(chance.sample(TAGS, 2))))


def _draft(chance: Random) -> MemoryDraft:
    facts = chance.sample(TEXTS[:20], chance.choice([0, 0, 0, 1, 3]))
    return MemoryDraft(
        chance.choice(TEXTS),
        chance.choice(SOURCES),
        metadata=chance.choice(METADATA),
        document_at=chance.choice([None, MAY, MAY, MAY + timedelta(days=chance.randint(0, 4))]),
        archived=chance.random() < 0.1,
        tags=tuple(chance.sample(TAGS, chance.choice([0, 0, 1, 2]))),
        facts=tuple(facts),
    )


@contextmanager
def _large(mode: str) -> Iterator[None]:
    """Search even a few rows as many are searched."""
    with ExitStack() as patched:
        if mode != "as it is":
            patched.enter_context(patch.object(namespace, "SCORED_WHOLE_ROWS", 0))
            patched.enter_context(patch.object(vector, "CODES_FROM_ROWS", 1))
            patched.enter_context(patch.object(array_file, "LARGE_FROM_BYTES", 0))
        yield


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stores", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0, help="the number of the first store")
    arguments = parser.parse_args()
    began = time.monotonic()
    compared = run(arguments.stores, arguments.first)
    print(f"{arguments.stores:,} stores, {compared:,} searches: all equal, in {time.monotonic() - began:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
