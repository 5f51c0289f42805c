"""Methods to store and search a case: texts, facts, or both, each in a separate engine through its public methods."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from benchmarks.facts.cases import Case, Telling
from benchmarks.retrieval.data_sets import Question
from benchmarks.retrieval.metrics import TOP_K, Found
from benchmarks.retrieval.own import BATCH, opened
from benchmarks.retrieval.vector_cache import CachedEmbedder
from souvenir.core.types import MemoryDraft, Scope, SearchQuery
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.fact_splitting import by_sentences

DEPTH = 10 * TOP_K
"""Memories looked at where several stand for one telling."""


@dataclass(frozen=True, slots=True)
class Way:
    """:param drafts: The memories that a telling becomes. :param depth: How many are looked at.

    :param hybrid: Whether words are scored beside the cosine. :param labelled: Whether it takes labelled facts.
    """

    name: str
    drafts: Callable[[Telling], Sequence[MemoryDraft]]
    depth: int = TOP_K
    hybrid: bool = True
    labelled: bool = False


def sentences(telling: Telling) -> tuple[str, ...]:
    return by_sentences(telling.text).facts


def _text(telling: Telling) -> Sequence[MemoryDraft]:
    return [_draft(telling, telling.text)]


def _text_and_facts(telling: Telling) -> Sequence[MemoryDraft]:
    return [_draft(telling, telling.text, telling.facts)]


def _text_and_sentences(telling: Telling) -> Sequence[MemoryDraft]:
    return [_draft(telling, telling.text, sentences(telling))]


def _facts(telling: Telling) -> Sequence[MemoryDraft]:
    """A memory each; a telling that has none is found by its text, as one fact."""
    return [_draft(telling, fact) for fact in telling.facts or (telling.text,)]


def _sentences(telling: Telling) -> Sequence[MemoryDraft]:
    return [_draft(telling, sentence) for sentence in sentences(telling) or (telling.text,)]


def _draft(telling: Telling, text: str, facts: Sequence[str] = ()) -> MemoryDraft:
    return MemoryDraft(text, telling.source, document_at=telling.occurred_at, facts=tuple(facts))


TEXT = Way("text", _text)
WITH_FACTS = Way("text and facts", _text_and_facts, labelled=True)
WITH_SENTENCES = Way("text and sentences", _text_and_sentences)

WAYS = (
    WITH_FACTS,
    WITH_SENTENCES,
    TEXT,
    Way("facts", _facts, DEPTH, labelled=True),
    Way("facts by cosine alone", _facts, DEPTH, hybrid=False, labelled=True),
    Way("sentences", _sentences, DEPTH),
    Way("sentences by cosine alone", _sentences, DEPTH, hybrid=False),
)
"""The first two are what the service does; cosine alone is how small memory servers search facts."""


def answers(case: Case, way: Way, embedder: CachedEmbedder) -> Sequence[Found]:
    """What a way finds for each question, best first, by the ids of tellings."""
    with tempfile.TemporaryDirectory(prefix="souvenir-bench-") as folder, opened(Path(folder), embedder) as engine:
        names = _stored(case, way, engine)
        return [_asked(question, way, engine, names) for question in case.questions]


def _stored(case: Case, way: Way, engine: MemoryEngine) -> Mapping[int, str]:
    """Every scope as an agent; which telling each memory is of."""
    names: dict[int, str] = {}
    for scope, tellings in groupby(case.tellings, key=lambda telling: telling.scope):
        drafts = [(telling.id, draft) for telling in tellings for draft in way.drafts(telling)]
        for start in range(0, len(drafts), BATCH):
            batch = drafts[start : start + BATCH]
            ids = engine.add_batch(Scope(scope), [draft for _, draft in batch])
            names.update(zip(ids, (name for name, _ in batch), strict=True))
    return names


def _asked(question: Question, way: Way, engine: MemoryEngine, names: Mapping[int, str]) -> Found:
    result = engine.search(Scope(question.scope), SearchQuery(question.text, top_k=way.depth, hybrid=way.hybrid))
    if result.degraded:
        raise RuntimeError(f"{question.scope}: an arm did not run: {result.degraded}")
    best: dict[str, float] = {}
    for hit in result.hits:
        best.setdefault(names[hit.memory.id], hit.score)
    return list(best.items())[:TOP_K]
