"""The hand-made labels in `benchmarks/labels`, and what the benchmarks on them have in common."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.retrieval.data_sets import entries
from souvenir.core.settings import Settings
from souvenir.core.types import Embedder, MessageRole
from souvenir.memories.engine import MemoryEngine
from souvenir.store.messages.messages import MessageDraft

LABELS = Path(__file__).resolve().parent / "labels"


def rows(name: str, *, aside: bool) -> Iterator[dict[str, Any]]:
    """Yield the labels of a file that were used in development, or those that were set aside."""
    return (row for row in entries(LABELS / f"{name}.jsonl") if bool(row.get("aside")) is aside)


def message(row: Mapping[str, Any]) -> MessageDraft:
    time = datetime.fromisoformat(row["time"])
    return MessageDraft(MessageRole(row["role"]), row["text"], session_id=row["session"], created_at=time)


def parser(description: str | None) -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--aside", action="store_true", help="measure on the labels that were set aside")
    return found


@contextmanager
def engine_of(embedder: Embedder) -> Iterator[MemoryEngine]:
    """An empty engine, which is deleted at the end."""
    with (
        TemporaryDirectory(prefix="souvenir-bench-") as folder,
        closing(MemoryEngine.open(Settings(data_dir=Path(folder)), embedder)) as engine,
    ):
        yield engine
