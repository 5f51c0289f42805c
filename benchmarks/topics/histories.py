"""The labelled histories: messages with their subjects, of `benchmarks/labels/topics` and `.../conversations`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.retrieval.data_sets import entries
from souvenir.core.types import MessageRole
from souvenir.store.messages.messages import MessageDraft

LABELS = Path(__file__).resolve().parent.parent / "labels"


@dataclass(frozen=True, slots=True)
class Labelled:
    """A message. :param subject: None if it is not labelled, or not part of this measurement."""

    draft: MessageDraft
    subject: str | None


@dataclass(frozen=True, slots=True)
class History:
    """The messages of one agent."""

    kind: str
    name: str
    messages: Sequence[Labelled]


def histories(data: Path | None, *, aside: bool) -> Iterator[History]:
    """Yield the histories for development, or those set aside.

    :param data: The folder of `locomo_turns`; without it, LoCoMo is left out.
    """
    found: defaultdict[tuple[str, str], list[Labelled]] = defaultdict(list)
    for kind in ("short_sessions", "long_sessions"):
        for line in _lines(f"topics/{kind}", aside=aside):
            found[kind, line["history"]].append(_labelled(line))
    for line in _lines("conversations/conversations", aside=aside):
        if "subject" in line:
            kind = "mixed_sessions" if line["language"] == "en" else "mixed_sessions_in_other_languages"
            found[kind, line["conversation"]].append(_labelled(line))
    for (kind, name), messages in found.items():
        yield History(kind, name, messages)
    if data is not None:
        yield from _locomo(data, aside=aside)


def _labelled(line: dict[str, Any]) -> Labelled:
    draft = MessageDraft(
        MessageRole(line["role"]),
        line["text"],
        session_id=line["session"],
        created_at=datetime.fromisoformat(line["time"]),
    )
    return Labelled(draft, line["subject"])


def _locomo(data: Path, *, aside: bool) -> Iterator[History]:
    """Whole conversations, of which some sessions are labelled."""
    subjects = {line["id"]: line["subject"] for line in _lines("topics/locomo_subjects", aside=aside)}
    conversations: defaultdict[str, list[Labelled]] = defaultdict(list)
    for entry in entries(data / "locomo_turns" / "docs.jsonl"):
        meta, text = entry["meta"], entry["text"].split(": ", 1)[-1]
        draft = MessageDraft(
            MessageRole.USER,
            text,
            session_id=meta["session"],
            speaker=meta["speaker"],
            created_at=datetime.fromisoformat(meta["time"]).replace(tzinfo=UTC),
        )
        conversations[meta["scope"]].append(Labelled(draft, subjects.get(entry["id"])))
    for name, messages in conversations.items():
        if any(one.subject for one in messages):
            yield History("locomo", name, messages)


def _lines(name: str, *, aside: bool) -> Iterator[dict[str, Any]]:
    return (line for line in entries(LABELS / f"{name}.jsonl") if bool(line.get("aside")) is aside)
