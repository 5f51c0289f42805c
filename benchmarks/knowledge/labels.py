"""Labelled conversations: messages, rated insights, expected findings and the sentences that define things."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.labelled import message, rows
from souvenir.store.messages.messages import MessageDraft


@dataclass(frozen=True, slots=True)
class Expected:
    """A finding that insights should have. :param sources: Places of messages in the conversation, from 0."""

    kind: str
    says: str
    sources: frozenset[int]
    due: str | None
    done: bool


@dataclass(frozen=True, slots=True)
class Described:
    """A person or thing with the message that has its definition; None if no sentence defines it."""

    name: str
    message: int | None
    sentence: str | None


@dataclass(frozen=True, slots=True)
class Labelled:
    """A conversation.

    :param ratings: The ratings of sentences, `useful`, `useless` or `wrong`. :param verdicts: Those of lines of people
        and things, and of names of topics: `keep` or `delete`.
    """

    name: str
    messages: Sequence[MessageDraft]
    ratings: Mapping[str, str]
    verdicts: Mapping[str, str]
    expected: Sequence[Expected]
    described: Sequence[Described]


def conversations(*, aside: bool) -> list[Labelled]:
    """Return the conversations that were used in development, or those that were set aside."""
    messages: defaultdict[str, list[MessageDraft]] = defaultdict(list)
    for row in rows("conversations/conversations", aside=aside):
        messages[row["conversation"]].append(message(row))
    ratings: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for row in rows("conversations/insights", aside=aside):
        ratings[row["conversation"]][row["text"]] = row["rating"]
    verdicts: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for row in rows("conversations/lines", aside=aside):
        verdicts[row["conversation"]][row["line"]] = row["verdict"]
    expected: defaultdict[str, list[Expected]] = defaultdict(list)
    for row in rows("conversations/expected", aside=aside):
        found = Expected(row["kind"], row["says"], frozenset(row["sources"]), row["due"], row.get("done", False))
        expected[row["conversation"]].append(found)
    described: defaultdict[str, list[Described]] = defaultdict(list)
    for row in rows("conversations/descriptions", aside=aside):
        described[row["conversation"]].append(Described(row["name"], row["message"], row["sentence"]))
    return [
        Labelled(name, said, ratings[name], verdicts[name], expected[name], described[name])
        for name, said in messages.items()
    ]
