"""The three tiers with many messages of one agent: every operation timed with the real model and new queries.

    python -m benchmarks.conversation                         100,000 messages, most of whose time is the filling
    python -m benchmarks.conversation --messages 5000
    python -m benchmarks.conversation --folder /tmp/filled    keeps what was filled, and goes on with it

All verbs, and the peer's searches, take turns, so that what else the machine does hits them alike. Embedding the query
is part of every search. docs/benchmarks.md says more.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from benchmarks.conversation.figures import print_figures, targets_of
from benchmarks.conversation.filling import fill
from benchmarks.conversation.peer import BlobScan
from benchmarks.conversation.turns import Durations, measure
from benchmarks.report import print_targets, progress, write_results
from souvenir.core.settings import Settings
from souvenir.memories.engine import MemoryEngine
from souvenir.models.embedding.factory import embedder_of


def run(messages: int, rounds: int, folder: Path) -> bool:
    settings = Settings(data_dir=folder / "ours")
    with closing(embedder_of(settings)) as embedder:
        embedder.load()
        with closing(MemoryEngine.open(settings, embedder)) as engine:
            fill(engine, messages)
            with closing(BlobScan(folder / "peer.db", embedder)) as peer:
                peer.fill(settings.database_path)
                progress("peer filled")
                durations = asyncio.run(measure(engine, peer, rounds))
    return report(messages, durations)


def report(messages: int, durations: Durations) -> bool:
    print_figures(messages, durations)
    targets = targets_of(durations)
    print_targets(targets)
    figures = {"messages": messages, "durations_ms": durations.summary()}
    print(f"\n{write_results('conversation', figures, targets)}")
    return all(target.met for target in targets)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=100_000, help="of the one agent")
    parser.add_argument("--rounds", type=int, default=20, help="turns of every verb, ten operations each")
    parser.add_argument("--folder", type=Path, help="where the filled data stays for the next run")
    arguments = parser.parse_args()
    if arguments.folder is not None:
        arguments.folder.mkdir(parents=True, exist_ok=True)
        return 0 if run(arguments.messages, arguments.rounds, arguments.folder) else 1
    with tempfile.TemporaryDirectory(prefix="souvenir-bench-") as folder:
        return 0 if run(arguments.messages, arguments.rounds, Path(folder)) else 1


if __name__ == "__main__":
    sys.exit(main())
