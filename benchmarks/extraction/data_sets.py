"""The labelled texts: conversations with reference facts, statements that are corrected later, and typed paragraphs.

Below the folder of the sets stand `extraction/locomo_facts.jsonl`, `extraction/update_pairs.jsonl` and
`extraction/paragraphs.jsonl`, and `locomo_turns/docs.jsonl` with the turns of the conversations; docs/benchmarks.md
describes the fields. Every text becomes what a client would send: a transcript, and when it was said.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from benchmarks.retrieval.data_sets import entries, moment

LINE_END = "\n"


@dataclass(frozen=True, slots=True)
class Turn:
    """:param text: What is said, without the speaker's name."""

    id: str
    speaker: str
    text: str

    @property
    def line(self) -> str:
        """As it stands in a transcript: one line, so that each turn is one."""
        return f"{self.speaker}: {' '.join(self.text.split())}"


@dataclass(frozen=True, slots=True)
class ReferenceFact:
    """:param evidence: The turns that say it."""

    text: str
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class Session:
    """A part of a conversation that was held at once, and what people found worth keeping of it."""

    id: str
    at: datetime | None
    turns: Sequence[Turn]
    facts: Sequence[ReferenceFact]

    def turn_at(self, offset: int) -> str:
        """The id of the turn in which a character stands, of the transcript that has a line a turn."""
        starts, start = [], 0
        for turn in self.turns:
            starts.append(start)
            start += len(turn.line) + len(LINE_END)
        return self.turns[max(bisect_right(starts, offset) - 1, 0)].id


@dataclass(frozen=True, slots=True)
class Conversation:
    id: str
    sessions: Sequence[Session]


class PairKind(StrEnum):
    """`update`: the later statement replaces the earlier one. `contradiction`: nobody can say which of them holds."""

    UPDATE = "update"
    CONTRADICTION = "contradiction"


@dataclass(frozen=True, slots=True)
class Statement:
    """One side of a pair: what one user wrote, in one message or in a few."""

    texts: Sequence[str]
    at: datetime | None


@dataclass(frozen=True, slots=True)
class Pair:
    """Two statements of one person, `scope`, and a question to which the second gives another answer than the first."""

    id: str
    kind: PairKind
    scope: str
    first: Statement
    second: Statement
    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class TypedText:
    type: str
    text: str


@dataclass(frozen=True, slots=True)
class Paragraph:
    id: str
    text: str
    expected: Sequence[TypedText]


def read_conversations(data: Path, count: int) -> list[Conversation]:
    """The first conversations, as far as reference facts of them are there."""
    facts: defaultdict[str, list[ReferenceFact]] = defaultdict(list)
    for entry in entries(data / "extraction" / "locomo_facts.jsonl"):
        facts[entry["session"]].append(ReferenceFact(entry["fact"], frozenset(entry["evidence"])))
    turns: defaultdict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for entry in entries(data / "locomo_turns" / "docs.jsonl"):
        turns[entry["meta"]["session"]].append(entry)
    conversations: defaultdict[str, list[Session]] = defaultdict(list)
    for id_, said in turns.items():
        if id_ in facts:
            conversations[said[0]["meta"]["scope"]].append(_session(id_, said, facts[id_]))
    return [Conversation(id_, sessions) for id_, sessions in conversations.items()][:count]


def read_pairs(data: Path, count: int) -> list[Pair]:
    """The first pairs whose statements stand in messages of their own."""
    pairs = entries(data / "extraction" / "update_pairs.jsonl")
    return [_pair(entry) for entry in pairs if not entry["same_message"]][:count]


def read_paragraphs(data: Path, count: int) -> list[Paragraph]:
    return [
        Paragraph(
            entry["id"],
            entry["text"],
            [TypedText(expected["type"], expected["content"]) for expected in entry["expected"]],
        )
        for entry in entries(data / "extraction" / "paragraphs.jsonl")
    ][:count]


def _session(id_: str, said: Sequence[Mapping[str, Any]], facts: Sequence[ReferenceFact]) -> Session:
    turns = [
        Turn(entry["id"], entry["meta"]["speaker"], entry["text"].removeprefix(f"{entry['meta']['speaker']}: "))
        for entry in said
    ]
    return Session(id_, moment(said[0]["meta"].get("time")), turns, facts)


def _pair(entry: Mapping[str, Any]) -> Pair:
    first, second = (
        Statement([one["text"] for one in entry[side]], moment(entry[side][0].get("time")))
        for side in ("first", "second")
    )
    return Pair(entry["id"], PairKind(entry["kind"]), entry["scope"], first, second, entry["question"], entry["answer"])
