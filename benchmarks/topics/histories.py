"""The labelled histories: messages with their subjects, of `benchmarks/labels/topics` and `.../conversations`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.labelled import message, rows
from benchmarks.retrieval.data_sets import entries
from souvenir.core.types import MessageRole
from souvenir.store.messages.messages import MessageDraft


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
        for line in rows(f"topics/{kind}", aside=aside):
            found[kind, line["history"]].append(Labelled(message(line), line["subject"]))
    for line in rows("conversations/conversations", aside=aside):
        if "subject" in line:
            kind = "mixed_sessions" if line["language"] == "en" else "mixed_sessions_in_other_languages"
            found[kind, line["conversation"]].append(Labelled(message(line), line["subject"]))
    for (kind, name), messages in found.items():
        yield History(kind, name, messages)
    if data is not None:
        yield from _locomo(data, aside=aside)


def _locomo(data: Path, *, aside: bool) -> Iterator[History]:
    """Whole conversations, of which some sessions are labelled."""
    subjects = {line["id"]: line["subject"] for line in rows("topics/locomo_subjects", aside=aside)}
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
