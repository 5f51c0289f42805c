"""The questions for each agent: its own, answerable or not, and those of others; the same on each run."""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from benchmarks.retrieval.data_sets import ADVERSARIAL, DataSet, Document, agent_name, entries
from souvenir.core.types import MessageRole

UNANSWERABLE = (ADVERSARIAL, "abstention", "never_said")
"""Categories of questions about a subject that is mentioned, without an answer to them."""

OFF_TOPIC = "off_topic"
ALL = "all"
"""The scope of sets without conversations."""

OTHER_SCOPES, OTHER_SETS = 60, 40
"""Questions of others that each agent is asked."""

_SEED = 4


class Kind(StrEnum):
    """What a question is to an agent. Renamed: of another conversation, with the names of those who speak in this one.

    Those are not fitted on, nor counted in a calibration: that people are asked about what they never spoke of is
    common, and how common nobody knows.
    """

    ANSWERED = "answered"
    UNANSWERED = "not answered"
    OFF_TOPIC = "off topic"
    OTHER_SCOPE = "of another conversation"
    RENAMED = "of another, renamed"
    OTHER_SET = "of another set"

    @property
    def own(self) -> bool:
        """Whether it is about what the agent heard of."""
        return self in (Kind.ANSWERED, Kind.UNANSWERED)


@dataclass(frozen=True, slots=True)
class Question:
    """:param relevant: The ids of the documents that answer it, or that an unanswerable question is about."""

    text: str
    kind: Kind
    category: str = ""
    relevant: frozenset[str] = frozenset()


Questions = Mapping[str, Sequence[Question]]
"""By agent."""


def read_questions(folder: Path, names: Sequence[str]) -> Mapping[str, Questions]:
    """By set and agent. Sets with an agent of the same name are of the same texts, and lend each other none.

    Sets of documents lend none either.
    """
    own = {name: _own(folder / name) for name in names}
    speakers = {name: _speakers(folder / name) for name in names}
    return {
        name: {
            scope: [*questions, *_of_others(own, speakers[name], name, scope)] for scope, questions in scopes.items()
        }
        for name, scopes in own.items()
    }


def _speakers(folder: Path) -> Mapping[str, Sequence[str]]:
    """The names of those who speak in a conversation, if they have names."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for entry in entries(folder / "docs.jsonl"):
        speaker = entry["meta"].get("speaker")
        if speaker and speaker not in set(MessageRole):
            found[agent_name(entry["meta"]["scope"])].add(speaker)
    return {scope: sorted(names) for scope, names in found.items()}


def _own(folder: Path) -> Questions:
    """One that has no relevant document and asks for no abstention is left out: it may be answered all the same."""
    found: defaultdict[str, list[Question]] = defaultdict(list)
    for entry in entries(folder / "queries.jsonl"):
        relevant = frozenset(id_ for id_, grade in entry["relevant"].items() if grade > 0)
        if entry["category"] in UNANSWERABLE:
            kind = Kind.UNANSWERED
        elif entry["category"] == OFF_TOPIC:
            kind = Kind.OFF_TOPIC
        elif relevant:
            kind = Kind.ANSWERED
        else:
            continue
        found[agent_name(entry["scope"])].append(Question(entry["text"], kind, entry["category"], relevant))
    return found


def _of_others(
    own: Mapping[str, Questions], speakers: Mapping[str, Sequence[str]], name: str, scope: str
) -> list[Question]:
    draw = random.Random(f"{_SEED} {scope}")
    here = _answered(own[name], without=scope)
    lenders = [other for other in own.values() if scope not in other and ALL not in other]
    elsewhere = [text for other in lenders for text in _answered(other)]
    others = draw.sample(here, min(OTHER_SCOPES, len(here)))
    others_elsewhere = draw.sample(elsewhere, min(OTHER_SETS, len(elsewhere)))
    names, own_names = sorted(set().union(*speakers.values())), speakers.get(scope, ())
    renamed = [_renamed(text, names, draw.sample(own_names, len(own_names))) for text in others] if own_names else []
    kinds = {Kind.OTHER_SCOPE: others, Kind.RENAMED: renamed, Kind.OTHER_SET: others_elsewhere}
    return [Question(text, kind) for kind, texts in kinds.items() for text in texts]


def _renamed(text: str, elsewhere: Sequence[str], here: Sequence[str]) -> str:
    """The text with the first name in it replaced by the first of those who speak here, the second by the second."""
    given: dict[str, str] = {}

    def name_here(found: re.Match[str]) -> str:
        return given.setdefault(found[0], here[len(given) % len(here)])

    return re.sub("|".join(map(re.escape, elsewhere)), name_here, text)


def _answered(scopes: Questions, *, without: str = "") -> list[str]:
    return [
        one.text for scope, all_of in scopes.items() if scope != without for one in all_of if one.kind is Kind.ANSWERED
    ]


@dataclass(frozen=True, slots=True)
class Stores:
    """A set as agents with their questions.

    :param conversation_of: The conversation that an agent is, or is a part of.
    :param weight: Of each question in a fit: several sizes of the same texts count as one set.
    """

    data_set: DataSet
    questions: Questions
    conversation_of: Mapping[str, str]
    weight: float = 1.0


def whole(data_set: DataSet, questions: Questions, weight: float = 1.0) -> Stores:
    """Every conversation as one agent. That of a set of documents is the set."""
    named = {scope: data_set.name if scope == ALL else scope for scope in data_set.documents}
    return Stores(data_set, questions, named, weight)


def cut(data_set: DataSet, questions: Questions, size: int, weight: float) -> Stores:
    """Every conversation as several agents, each of consecutive sessions with at least `size` documents.

    An agent is asked the questions that its own documents answer or are about, and those of others.
    """
    documents: dict[str, Sequence[Document]] = {}
    asked: dict[str, Sequence[Question]] = {}
    conversation_of: dict[str, str] = {}
    for scope, of_scope in data_set.documents.items():
        for number, part in enumerate(_parts(of_scope, size)):
            store, ids = f"{scope} {size} {number}", {document.id for document in part}
            documents[store], conversation_of[store] = part, scope
            asked[store] = [
                Question(one.text, one.kind, one.category, one.relevant & ids)
                for one in questions[scope]
                if not one.kind.own or one.relevant & ids
            ]
    return Stores(
        DataSet(f"{data_set.name}, {size} a store", data_set.kind, documents, ()), asked, conversation_of, weight
    )


def _parts(documents: Sequence[Document], size: int) -> Sequence[Sequence[Document]]:
    """Cut between sessions; a short remainder belongs to the last part."""
    parts: list[list[Document]] = [[]]
    for before, document in zip([None, *documents], documents, strict=False):
        if before is not None and before.session != document.session and len(parts[-1]) >= size:
            parts.append([])
        parts[-1].append(document)
    if len(parts) > 1 and len(parts[-1]) < size / 2:
        parts[-2] += parts.pop()
    return parts
