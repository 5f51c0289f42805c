"""Labelled data sets on disk, and the form of their documents in the service; docs/ranking.md describes the files.

A document with a session and a turn was said by somebody: it is a message of an agent. Every other one is a memory.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from souvenir.core.types import MemoryDraft, MessageRole, PassageKind
from souvenir.store.messages.messages import MessageDraft

ADVERSARIAL = "adversarial"
"""Questions about the wrong person or thing: they ask for abstention, and recall says nothing of them."""

_CHINESE_TIME = re.compile(r"(\d{4})年(\d{1,2})月(\d{1,2})日(?:\D*(\d{1,2}):(\d{2}))?")


@dataclass(frozen=True, slots=True)
class Document:
    """:param turn: Whether it has a place in a conversation, which makes it a message."""

    id: str
    text: str
    scope: str
    occurred_at: datetime | None = None
    session: str | None = None
    speaker: str | None = None
    turn: bool = False

    @property
    def kind(self) -> PassageKind:
        return PassageKind.MESSAGE if self.turn else PassageKind.MEMORY

    def message(self) -> MessageDraft:
        """A speaker who has a name is one of the people whom the agent listens to; the name leaves the text."""
        session_id = _part_of_a_path(self.session or self.scope)
        if self.speaker in set(MessageRole):
            return MessageDraft(
                MessageRole(self.speaker), self.text, session_id=session_id, created_at=self.occurred_at
            )
        return MessageDraft(
            MessageRole.USER,
            self.text.removeprefix(f"{self.speaker}: "),
            session_id=session_id,
            speaker=self.speaker,
            created_at=self.occurred_at,
        )

    def memory(self) -> MemoryDraft:
        return MemoryDraft(self.text, self.session or self.scope, document_at=self.occurred_at)


@dataclass(frozen=True, slots=True)
class Question:
    """`relevant` holds the grade of every document that answers, above zero."""

    text: str
    scope: str
    category: str
    relevant: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class DataSet:
    """Documents by scope, each an agent of its own; a question searches its own scope only."""

    name: str
    kind: PassageKind
    documents: Mapping[str, Sequence[Document]]
    questions: Sequence[Question]

    @property
    def sessions(self) -> Mapping[str, str]:
        """The session of each document that has one."""
        return {
            document.id: document.session
            for documents in self.documents.values()
            for document in documents
            if document.session is not None
        }

    def __len__(self) -> int:
        return sum(map(len, self.documents.values()))


def read_data_set(folder: Path) -> DataSet:
    """The documents, and the questions that have an answer among them.

    :raises FileNotFoundError: If one of the two files is not there.
    :raises ValueError: If some documents are messages and some are not.
    """
    documents: defaultdict[str, list[Document]] = defaultdict(list)
    for entry in entries(folder / "docs.jsonl"):
        document = _document(entry)
        documents[document.scope].append(document)
    kinds = {document.kind for of_scope in documents.values() for document in of_scope}
    if len(kinds) != 1:
        raise ValueError(f"{folder}: give either every document a session and a turn, or none of them")
    questions = [
        Question(entry["text"], agent_name(entry["scope"]), entry["category"], relevant)
        for entry in entries(folder / "queries.jsonl")
        if (relevant := {id_: float(grade) for id_, grade in entry["relevant"].items() if grade > 0})
        and entry["category"] != ADVERSARIAL
    ]
    return DataSet(folder.name, kinds.pop(), documents, questions)


def agent_name(scope: str) -> str:
    """A scope as the name of an agent, which is part of paths."""
    return _part_of_a_path(scope)


def entries(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file if line.strip())


def moment(time: str | None) -> datetime | None:
    """An ISO-8601 time, or one of the form 2024年04月01日 08:12, in UTC unless it says otherwise; else None."""
    chinese = _CHINESE_TIME.match(time or "")
    if chinese:
        year, month, day, hour, minute = (int(part or 0) for part in chinese.groups())
        return datetime(year, month, day, hour, minute, tzinfo=UTC)
    try:
        read = datetime.fromisoformat(time or "")
    except ValueError:
        return None
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def _document(entry: Mapping[str, Any]) -> Document:
    meta = entry["meta"]
    return Document(
        entry["id"],
        entry["text"],
        agent_name(meta["scope"]),
        occurred_at=moment(meta.get("time")),
        session=meta.get("session"),
        speaker=meta.get("speaker"),
        turn=meta.get("turn") is not None and None not in (meta.get("session"), meta.get("speaker")),
    )


def _part_of_a_path(name: str) -> str:
    return name.replace("/", " ")
