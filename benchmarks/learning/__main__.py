"""Searches during extractions: the real service with the real embedding model and a slow language model.

    python -m benchmarks.learning
    python -m benchmarks.learning --rounds 1 --jobs 8

Two searchers ask ten different questions a second from the beginning to the end. Meanwhile it is quiet, then long
transcripts of four sources are handed in at once and learned from, two at a time, and so on in turns; at the end it is
quiet again. What is compared is searches of the quiet blocks with searches of the blocks with jobs. The language model,
the searchers and the service have a process each.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from benchmarks.learning.jobs import SOURCES, Ended, Refusal, fill_queue, learn, out_of_order
from benchmarks.learning.model import NAME, Figures, serving
from benchmarks.learning.watching import Block, Seen, watching
from benchmarks.load.sentences import memories
from benchmarks.report import Target, percentile_ms, print_targets, progress, table, write_results
from benchmarks.service import Service
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.models.embedding.factory import embedder_of

MAX_INFLIGHT = 2
BATCH = 500
QUIET_S = 40.0
"""Longer than MEMORY_TRIM_COOLDOWN_SEC, so that what jobs leave behind is given back within it."""

WARM_UP_S = 5.0
QUIET, BUSY = "no job", "with jobs"
COMPLETED = "completed"
MIB = 1024 * 1024
MOST_GROWTH_MIB, KEPT_GROWTH_MIB = 150.0, 100.0


@dataclass(frozen=True, slots=True)
class Run:
    """What was done and seen; the blocks take turns, and the first and the last are quiet."""

    blocks: Sequence[Block]
    rounds: Sequence[Sequence[Ended]]
    seen: Seen
    model: Figures
    refusal: Refusal

    @property
    def jobs(self) -> Sequence[Ended]:
        return [job for jobs in self.rounds for job in jobs]

    def search_s(self, name: str) -> list[float]:
        """Durations of the searches in all blocks of a name."""
        return [one.seconds for block in self.blocks if block.name == name for one in block.searches(self.seen)]


def build(data_dir: Path, count: int) -> None:
    """A data folder with `count` memories, a quarter of each source, embedded by the real model."""
    embedder = embedder_of(Settings())
    engine = MemoryEngine.open(Settings(data_dir=data_dir), embedder)
    drafts = [MemoryDraft(text, SOURCES[at % len(SOURCES)]) for at, text in enumerate(islice(memories(seed=0), count))]
    for start in range(0, count, BATCH):
        engine.add_batch(Scope(), drafts[start : start + BATCH])
    engine.close()
    embedder.close()


def measure(service: Service, rounds: int, count: int, rate: float) -> tuple[list[Block], list[Sequence[Ended]], Seen]:
    """Quiet blocks and blocks with jobs in turns, and what was seen meanwhile."""
    blocks: list[Block] = []
    ended: list[Sequence[Ended]] = []

    def block(name: str, begin: float) -> None:
        blocks.append(Block(name, begin, time.monotonic()))
        progress(f"{name} for {blocks[-1].end - begin:.0f} s")

    with watching(service.port, rate) as seen:
        time.sleep(WARM_UP_S)
        for number in range(rounds + 1):
            begin = time.monotonic()
            time.sleep(QUIET_S)
            block(QUIET, begin)
            if number < rounds:
                begin = time.monotonic()
                ended.append(learn(service.port, count, first_seed=1 + number * count))
                block(BUSY, begin)
    return blocks, ended, seen


def run(arguments: argparse.Namespace, folder: Path) -> Run:
    progress(f"storing {arguments.memories} memories")
    build(folder / "data", arguments.memories)
    with serving(arguments.latency) as model:
        service = Service(
            folder / "data",
            EXTRACT_PROVIDER="openai",
            EXTRACT_MODEL=NAME,
            EXTRACT_BASE_URL=model.url,
            EXTRACT_MAX_INFLIGHT=str(MAX_INFLIGHT),
            EXTRACT_QUEUE_MAX=str(arguments.jobs),
        )
        progress(f"the service was ready after {service.start():.1f} s")
        try:
            blocks, rounds, seen = measure(service, arguments.rounds, arguments.jobs, arguments.rate)
            refusal = fill_queue(service.port, arguments.jobs + MAX_INFLIGHT)
        finally:
            service.stop()
    return Run(blocks, rounds, seen, model.figures, refusal)


def print_searches(done: Run) -> None:
    rows = [(f"{name}, all", done.search_s(name)) for name in (QUIET, BUSY)]
    for at, block in enumerate(done.blocks, start=1):
        rows.append((f"{block.name}, block {at}", [one.seconds for one in block.searches(done.seen)]))
    cells = [
        (name, *(f"{percentile_ms(took, percent):.1f}" for percent in (50, 95, 99)), str(len(took)))
        for name, took in rows
    ]
    print("\nSearches, milliseconds\n\n" + table(("", "p50", "p95", "p99", "count"), cells))


def report(done: Run, arguments: argparse.Namespace) -> bool:
    print_searches(done)
    before = done.blocks[0].resident(done.seen)[-1]
    highest = max(taken for block in done.blocks for taken in block.resident(done.seen))
    after = [block.resident(done.seen)[-1] for block in done.blocks if block.name == QUIET]
    print(
        f"\nResident: {before / MIB:.0f} MiB before, {highest / MIB:.0f} at most, after each round "
        + ", ".join(f"{taken / MIB:.0f}" for taken in after[1:])
    )
    facts = sum(job.facts for job in done.jobs)
    added = sum(len(job.added) for job in done.jobs)
    print(f"{len(done.jobs)} jobs: {facts} facts, {added} memories, {done.model.answered} questions to the model")
    failed = [one.failure for one in done.seen.searches if one.failure] + done.seen.failures
    wrong = [job.status for job in done.jobs if job.status != COMPLETED]
    faults = [*failed, *wrong, *done.model.unknown, *([done.refusal.fault] if done.refusal.fault else [])]
    for fault in sorted(set(faults))[:5]:
        print(f"Wrong: {fault}")
    quiet, busy = done.search_s(QUIET), done.search_s(BUSY)
    targets = [
        Target("search p95 with jobs / without", percentile_ms(busy, 95) / percentile_ms(quiet, 95), 1.5),
        Target("searches that failed", len(failed), 0),
        Target("jobs that did not complete", len(wrong), 0),
        Target("jobs out of their source's order", sum(map(out_of_order, done.rounds)), 0),
        Target("questions to the model at once", done.model.most_at_once, MAX_INFLIGHT),
        Target("resident above before, at most, MiB", (highest - before) / MIB, MOST_GROWTH_MIB),
        Target("resident above before, afterwards, MiB", (after[-1] - before) / MIB, KEPT_GROWTH_MIB),
        Target("extractions that wait at most", done.refusal.taken, arguments.jobs + MAX_INFLIGHT),
        Target("refusals of a full queue that say too little", int(done.refusal.fault is not None), 0),
    ]
    print_targets(targets)
    figures = {
        "searches": {
            f"{at} {block.name}": {
                f"p{percent}": percentile_ms([one.seconds for one in block.searches(done.seen)], percent)
                for percent in (50, 95, 99)
            }
            for at, block in enumerate(done.blocks, start=1)
        },
        "resident_mib": {"before": before / MIB, "highest": highest / MIB, "after": [taken / MIB for taken in after]},
        "facts": facts,
        "added": added,
        "questions": done.model.answered,
    }
    print(f"\n{write_results('learning', figures, targets)}")
    return all(target.met for target in targets)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=5_000, help="stored before it begins")
    parser.add_argument("--jobs", type=int, default=20, help="handed in at once")
    parser.add_argument("--rounds", type=int, default=2, help="of so many jobs")
    parser.add_argument("--rate", type=float, default=10.0, help="searches a second")
    parser.add_argument("--latency", type=float, default=2.0, help="seconds of an answer of the language model")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="souvenir-bench-") as folder:
        return 0 if report(run(arguments, Path(folder)), arguments) else 1


if __name__ == "__main__":
    sys.exit(main())
