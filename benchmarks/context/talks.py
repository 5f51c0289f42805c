"""Labelled conversations on disk, and questions for each: answered there, not answered there, of another subject."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from benchmarks.retrieval.data_sets import ADVERSARIAL, entries, moment
from souvenir.store.messages import MessageDraft
from souvenir.types import MessageRole

OTHER_SCOPES, OTHER_SETS = 60, 40
"""Questions of others that each conversation is asked; the same ones on every run."""

_SEED = 4


class Kind(StrEnum):
    """What a question is to a conversation."""

    ANSWERED = "answered"
    UNANSWERED = "not answered"
    OTHER_SCOPE = "of another conversation"
    OTHER_SET = "of the other set"


@dataclass(frozen=True, slots=True)
class Question:
    text: str
    kind: Kind


@dataclass(frozen=True, slots=True)
class Talk:
    """One conversation with its turns in order, and all that it is asked."""

    set_name: str
    scope: str
    turns: Sequence[MessageDraft]
    questions: Sequence[Question]


def read_talks(folder: Path, names: Sequence[str], *, scopes: int | None) -> Iterator[Talk]:
    """The conversations of the sets.

    :param scopes: So many of each set; None: all.
    """
    turns = {name: _turns(folder / name) for name in names}
    asked = {name: _questions(folder / name) for name in names}
    for name in names:
        for scope in sorted(turns[name])[:scopes]:
            yield Talk(name, scope, turns[name][scope], _all_asked(asked, name, scope))


def _all_asked(asked: Mapping[str, Mapping[str, Sequence[Question]]], name: str, scope: str) -> list[Question]:
    draw = random.Random(f"{_SEED} {scope}")
    here = [one.text for other, all_of in asked[name].items() if other != scope for one in all_of if _answered(one)]
    elsewhere = [
        one.text
        for other, scopes in asked.items()
        if other != name
        for all_of in scopes.values()
        for one in all_of
        if _answered(one)
    ]
    return [
        *asked[name][scope],
        *(Question(text, Kind.OTHER_SCOPE) for text in draw.sample(here, min(OTHER_SCOPES, len(here)))),
        *(Question(text, Kind.OTHER_SET) for text in draw.sample(elsewhere, min(OTHER_SETS, len(elsewhere)))),
    ]


def _answered(question: Question) -> bool:
    return question.kind is Kind.ANSWERED


def _turns(folder: Path) -> Mapping[str, list[MessageDraft]]:
    found: defaultdict[str, list[MessageDraft]] = defaultdict(list)
    for entry in entries(folder / "docs.jsonl"):
        found[entry["meta"]["scope"]].append(_turn(entry["text"], entry["meta"]))
    return found


def _turn(text: str, meta: Mapping[str, Any]) -> MessageDraft:
    speaker = str(meta["speaker"])
    session_id = str(meta["session"]).replace("/", " ")
    at = moment(meta.get("time"))
    if speaker in set(MessageRole):
        return MessageDraft(MessageRole(speaker), text, session_id=session_id, created_at=at)
    content = text.removeprefix(f"{speaker}: ")
    return MessageDraft(MessageRole.USER, content, session_id=session_id, speaker=speaker, created_at=at)


def _questions(folder: Path) -> Mapping[str, list[Question]]:
    found: defaultdict[str, list[Question]] = defaultdict(list)
    for entry in entries(folder / "queries.jsonl"):
        answered = any(grade > 0 for grade in entry["relevant"].values()) and entry["category"] != ADVERSARIAL
        found[entry["scope"]].append(Question(entry["text"], Kind.ANSWERED if answered else Kind.UNANSWERED))
    return found
