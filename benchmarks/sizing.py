"""Resources for a number of short memories: the real service on a filled data folder, read from its own metrics.

    python -m benchmarks.sizing                        0, 10,000 and 100,000 memories: some minutes
    python -m benchmarks.sizing --sizes 0 1000

The texts are synthetic (some 31 words, 170 characters, one passage each) and their vectors are handed out while the
folder is filled; the service is started on it anew, with the real model, and searched before it is asked.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from benchmarks.engine.corpus import make_corpus
from benchmarks.engine.sides import Ours
from benchmarks.report import progress, table, write_results
from benchmarks.service import Service
from souvenir.core.settings import Settings
from souvenir.models.embedding.onnx_embedder import OnnxEmbedder

SEARCHES = 50
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Footprint:
    """In MiB: what the process holds, what of that is the index, and what lies on the disk."""

    memories: int
    text_mb: float
    resident_mb: float
    index_mb: float
    database_mb: float
    snapshot_mb: float
    backup_mb: float

    def row(self) -> list[str]:
        megabytes = (self.text_mb, self.resident_mb, self.index_mb, self.database_mb, self.snapshot_mb, self.backup_mb)
        return [f"{self.memories:,}", *(f"{value:.0f}" for value in megabytes)]


def footprint(size: int, folder: Path) -> Footprint:
    corpus = make_corpus(max(size, 1), spare=1, query_count=SEARCHES, seed=size)
    texts = list(corpus.texts[:-1]) if size else []
    settings = Settings(data_dir=folder / str(size))
    ours = Ours(corpus, settings, OnnxEmbedder().model_id)
    if size:
        ours.build()
    ours.engine.close()
    progress(f"{size} memories: stored")
    service = Service(settings.data_dir)
    service.start()
    try:
        client = service.client()
        for query in corpus.queries:
            client.call("POST", "/search", {"query": query})
        figures = scraped(service.port)
        client.call("POST", "/backup")
    finally:
        service.stop()
    return Footprint(
        memories=int(figures["souvenir_memories"]),
        text_mb=sum(len(text.encode()) for text in texts) / MIB,
        resident_mb=figures["process_resident_memory_bytes"] / MIB,
        index_mb=figures["souvenir_index_bytes"] / MIB,
        database_mb=settings.database_path.stat().st_size / MIB,
        snapshot_mb=folder_mb(settings.index_dir),
        backup_mb=folder_mb(settings.backup_dir),
    )


def scraped(port: int) -> dict[str, float]:
    """The series without labels."""
    request = urllib.request.Request(f"http://127.0.0.1:{port}/metrics", headers={"Accept": "text/plain"})
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as answer:
        families = text_string_to_metric_families(answer.read().decode())
        return {sample.name: sample.value for family in families for sample in family.samples if not sample.labels}


def folder_mb(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / MIB


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[0, 10_000, 100_000], help="memories, in steps")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="souvenir-sizing-") as folder:
        found = [footprint(size, Path(folder)) for size in sorted(arguments.sizes)]
    header = ("memories", "texts", "resident", "index", "database", "snapshot", "backup")
    print("\nIn MiB:\n\n" + table(header, [one.row() for one in found]))
    print(f"\n{write_results('sizing', {'footprints': [asdict(one) for one in found]})}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
