"""Memories with their facts, and questions that some of them answer, from the sets of docs/ranking.md.

The labelled facts are LoCoMo's observations, each with the turns that it was drawn from. A memory is a turn, four
turns, a whole session, or a paragraph of four observations of one person; of the other sets it is a document, and has
no facts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path

from benchmarks.retrieval.data_sets import ADVERSARIAL, Document, Question, entries, read_data_set

TURNS, FACTS = "locomo_turns", "locomo_facts"
DOCUMENTS = ("cranfield", "med")
TURNS_TOGETHER = 4
FACTS_TOGETHER = 4


@dataclass(frozen=True, slots=True)
class Telling:
    """A memory before it is stored.

    :param source: Its conversation's session, or what it was read from. :param parts: The labelled things in it.
    """

    id: str
    scope: str
    source: str
    text: str
    occurred_at: datetime | None
    parts: frozenset[str]
    facts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Case:
    """:param tellings: In the order in which they are stored. :param questions: By the ids of tellings."""

    name: str
    tellings: Sequence[Telling]
    questions: Sequence[Question]

    @property
    def labelled(self) -> bool:
        return any(telling.facts for telling in self.tellings)


def read_cases(data: Path) -> Iterator[Case]:
    """Those of the sets that the folder has."""
    if (data / TURNS).is_dir() and (data / FACTS).is_dir():
        turns, observations = read_data_set(data / TURNS), read_data_set(data / FACTS)
        said = _said_in(data)
        for name, count in (("1 turn", 1), (f"{TURNS_TOGETHER} turns", TURNS_TOGETHER), ("session", None)):
            yield _case(name, list(_of_turns(turns.documents, said, count)), turns.questions)
        yield _case(f"{FACTS_TOGETHER} facts", list(_of_facts(observations.documents)), observations.questions)
    for name in DOCUMENTS:
        if (data / name).is_dir():
            documents = read_data_set(data / name)
            yield _case(name, list(map(_whole, _all(documents.documents))), documents.questions)


def _case(name: str, tellings: Sequence[Telling], questions: Iterable[Question]) -> Case:
    """A telling is relevant if anything that answers is a part of it."""
    telling_of = {part: telling.id for telling in tellings for part in telling.parts}
    asked = [
        Question(one.text, one.scope, one.category, {telling_of[part]: 1.0 for part in one.relevant})
        for one in questions
        if one.category != ADVERSARIAL
    ]
    return Case(name, tellings, asked)


def _all(documents: Mapping[str, Sequence[Document]]) -> Iterator[Document]:
    for of_scope in documents.values():
        yield from of_scope


def _whole(document: Document) -> Telling:
    source = document.session or document.scope
    return Telling(document.id, document.scope, source, document.text, document.occurred_at, frozenset((document.id,)))


def _said_in(data: Path) -> Mapping[str, Sequence[str]]:
    """What was observed of a turn; an observation of several turns is of the first one's."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for entry in entries(data / FACTS / "docs.jsonl"):
        for turn in entry["meta"]["evidence"][:1]:
            found[turn].append(entry["text"])
    return found


def _of_turns(
    documents: Mapping[str, Sequence[Document]], said: Mapping[str, Sequence[str]], count: int | None
) -> Iterator[Telling]:
    """So many turns of a session that follow each other; None: all of it."""
    for run in _runs(documents, lambda turn: turn.session, count):
        facts = (fact for turn in run for fact in said.get(turn.id, ()))
        yield _together(run, "\n".join(turn.text for turn in run), facts)


def _of_facts(documents: Mapping[str, Sequence[Document]]) -> Iterator[Telling]:
    """What was observed of one person in one session, told in paragraphs."""
    for run in _runs(documents, lambda fact: (fact.session, fact.speaker), FACTS_TOGETHER):
        yield _together(run, " ".join(fact.text for fact in run), (fact.text for fact in run))


def _runs(
    documents: Mapping[str, Sequence[Document]], key: Callable[[Document], object], count: int | None
) -> Iterator[Sequence[Document]]:
    for of_scope in documents.values():
        for _, same in groupby(of_scope, key=key):
            together = list(same)
            size = count or len(together)
            yield from (together[start : start + size] for start in range(0, len(together), size))


def _together(run: Sequence[Document], text: str, facts: Iterable[str]) -> Telling:
    first = run[0]
    parts = frozenset(one.id for one in run)
    source = first.session or first.scope
    return Telling(first.id, first.scope, source, text, first.occurred_at, parts, tuple(dict.fromkeys(facts)))
