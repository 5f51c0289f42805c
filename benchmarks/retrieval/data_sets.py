"""Labelled data sets on disk; docs/benchmarks.md describes the two files of one."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ADVERSARIAL = "adversarial"
"""Questions about the wrong person or thing: they ask for abstention, and recall says nothing of them."""


@dataclass(frozen=True, slots=True)
class Document:
    id: str
    text: str
    occurred_at: datetime | None


@dataclass(frozen=True, slots=True)
class Question:
    """`relevant` holds the grade of every document that answers, above zero."""

    text: str
    scope: str
    category: str
    relevant: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class DataSet:
    """Documents by scope; a question searches its own scope only."""

    name: str
    documents: Mapping[str, Sequence[Document]]
    questions: Sequence[Question]


def read_data_set(folder: Path) -> DataSet:
    """The documents, and the questions that have an answer among them.

    :raises FileNotFoundError: If one of the two files is not there.
    """
    documents: defaultdict[str, list[Document]] = defaultdict(list)
    for entry in entries(folder / "docs.jsonl"):
        meta = entry["meta"]
        documents[meta["scope"]].append(Document(entry["id"], entry["text"], moment(meta.get("time"))))
    questions = [
        Question(entry["text"], entry["scope"], entry["category"], relevant)
        for entry in entries(folder / "queries.jsonl")
        if (relevant := {id_: float(grade) for id_, grade in entry["relevant"].items() if grade > 0})
        and entry["category"] != ADVERSARIAL
    ]
    return DataSet(folder.name, documents, questions)


def entries(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file if line.strip())


def moment(time: str | None) -> datetime | None:
    """An ISO-8601 time, in UTC unless it says otherwise; other ways to write a time are not read."""
    try:
        read = datetime.fromisoformat(time or "")
    except ValueError:
        return None
    return read if read.tzinfo else read.replace(tzinfo=UTC)
