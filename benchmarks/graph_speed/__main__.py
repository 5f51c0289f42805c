"""An agent's graph with many messages: indexing throughput on one core, and the cost of reads.

    python -m benchmarks.graph_speed                        100,000 messages: about half an hour
    python -m benchmarks.graph_speed --messages 10000
    python -m benchmarks.graph_speed --folder /tmp/filled   keeps what was filled, and goes on with it

Messages are made up (`benchmarks.graph_speed.talks`), and their vectors handed out, since embedding a message is not
the graph's work; the names of concepts are embedded by the real model. While it fills, the process has one core. Then
somebody stores 50 messages a second for a while, on that core too, and reads are timed meanwhile; then they are timed
alone, beside a peer: the same database asked in plain SQL, as one would first write it.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from math import isnan
from pathlib import Path

from benchmarks.graph_speed.filling import HandedOut, fill, paced
from benchmarks.graph_speed.reading import Reads, measure
from benchmarks.report import Target, conclude, percentile_ms, progress, table
from souvenir.core.settings import Settings
from souvenir.knowledge.services import KnowledgeServices
from souvenir.memories.engine import MemoryEngine
from souvenir.models.embedding.factory import embedder_of

MESSAGES_PER_S = 50.0
CHECKED_AT_MOST = 10_000
"""Messages: a check reads all of them anew."""

READ_P50_MS, RELATED_P50_MS = 30.0, 50.0
RELATED = "related, depth 3"


@contextmanager
def one_core() -> Iterator[None]:
    """What runs in this process has one core of the machine."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def run(messages: int, rounds: int, seconds: float, folder: Path) -> int:
    settings = Settings(data_dir=folder)
    with closing(embedder_of(settings)) as model:
        model.load()
        embedder = HandedOut(model)
        with closing(MemoryEngine.open(settings, embedder)) as engine:
            graph = KnowledgeServices.open(engine)
            with one_core():
                filled = fill(engine, graph, embedder, messages)
                reads = Reads(engine, graph)
                together, reads_beside = paced(engine, graph, embedder, reads, seconds=seconds, per_s=MESSAGES_PER_S)
            alone = measure(reads, rounds)
            progress(f"read {rounds} times")
            problems = list(engine.check()) if messages <= CHECKED_AT_MOST else None
    parts = {"filled": filled, "paced": together}
    reads_ms = {
        name: {
            "p50": percentile_ms(ours, 50),
            "p95": percentile_ms(ours, 95),
            "paced_p50": percentile_ms(reads_beside[name], 50),
            "peer_p50": percentile_ms(peer, 50),
        }
        for name, (ours, peer) in alone.items()
    }
    rows = [
        [name, *("" if isnan(ms) else f"{ms:.1f}" for ms in of_read.values())] for name, of_read in reads_ms.items()
    ]
    done = [(f"{part}: {name}", f"{value:,.4g}") for part, of_part in parts.items() for name, value in of_part.items()]
    print("\n" + table(("on one core", ""), done) + "\n")
    print(table(("read, ms", "p50", "p95", "p50 beside 50 messages/s", "plain SQL, p50"), rows))
    targets = [
        Target("messages a second on one core", filled["per_s"], MESSAGES_PER_S, at_least=True),
        Target("messages that wait after the paced part", together["waiting"], MESSAGES_PER_S),
        *(
            Target(f"{name}, p50 ms", of_read["p50"], RELATED_P50_MS if name == RELATED else READ_P50_MS)
            for name, of_read in reads_ms.items()
        ),
        *([] if problems is None else [Target("disagreements that the check finds", len(problems), 0)]),
    ]
    return conclude("graph_speed", {"messages": messages, **parts, "reads_ms": reads_ms}, targets)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=100_000, help="of the one agent")
    parser.add_argument("--rounds", type=int, default=50, help="of every read")
    parser.add_argument("--seconds", type=float, default=60.0, help="that 50 messages a second are stored")
    parser.add_argument("--folder", type=Path, help="where the filled data stays for the next run")
    arguments = parser.parse_args()
    chosen = arguments.messages, arguments.rounds, arguments.seconds
    if arguments.folder is not None:
        arguments.folder.mkdir(parents=True, exist_ok=True)
        return run(*chosen, arguments.folder)
    with tempfile.TemporaryDirectory(prefix="souvenir-graph-") as folder:
        return run(*chosen, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
