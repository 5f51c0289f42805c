"""The answers of a search method: a ranking per question, and its duration."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from benchmarks.retrieval.certainty import Estimate, Table, estimates
from benchmarks.retrieval.data_sets import DataSet, Question
from benchmarks.retrieval.metrics import (
    DOCUMENT_METRICS,
    SESSION_DEPTH,
    SESSION_METRICS,
    TOP_K,
    Found,
    document_scores,
    session_scores,
)


class Searcher(Protocol):
    """Something that was given the documents of a set."""

    def search(self, question: Question, top_k: int) -> Found: ...


@dataclass(frozen=True, slots=True)
class Rankings:
    """The answers of one way to search, in the order of the questions.

    :param costs: Further figures of it, such as seconds and bytes, by what they say.
    """

    name: str
    found: Sequence[Found]
    costs: Mapping[str, float] = field(default_factory=dict)


def depth_of(data_set: DataSet) -> int:
    return SESSION_DEPTH if data_set.sessions else TOP_K


def ask(name: str, searcher: Searcher, data_set: DataSet, costs: Mapping[str, float] | None = None) -> Rankings:
    depth = depth_of(data_set)
    found = [searcher.search(question, depth) for question in data_set.questions]
    return Rankings(name, found, costs or {})


def metrics_of(data_set: DataSet) -> tuple[str, ...]:
    return DOCUMENT_METRICS + (SESSION_METRICS if data_set.sessions else ())


def scores_of(rankings: Rankings, data_set: DataSet) -> Table:
    """Every metric of every question."""
    sessions = data_set.sessions
    return np.array(
        [
            document_scores(found, question.relevant)
            + (session_scores(found, question.relevant, sessions) if sessions else [])
            for found, question in zip(rankings.found, data_set.questions, strict=True)
        ]
    )


def by_category(scores: Table, data_set: DataSet) -> Iterator[tuple[str, int, list[Estimate]]]:
    """Each category, how many questions it has, and its estimates."""
    categories = np.array([question.category for question in data_set.questions])
    for category in sorted(set(categories.tolist())):
        chosen = scores[categories == category]
        yield category, len(chosen), estimates(chosen)
