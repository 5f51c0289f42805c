"""One ranking over kinds: messages and memories of one agent together, compared with either kind alone.

    python -m benchmarks.retrieval.pool --data FOLDER

FOLDER holds `locomo_turns` and `locomo_facts` (the same conversations), `beam_chat` and `cranfield`; docs/ranking.md
describes their files. Each LoCoMo conversation becomes an agent with its turns as messages and its facts as memories.
Then sets share agents that have nothing to do with each other: what does either lose by it?
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.report import RESULTS_DIR, Target, print_targets, progress, table, write_results
from benchmarks.retrieval.certainty import Estimate, Table, differences, estimates
from benchmarks.retrieval.data_sets import ADVERSARIAL, DataSet, Document, Question, agent_name, entries, read_data_set
from benchmarks.retrieval.metrics import TOP_K, document_scores
from benchmarks.retrieval.own import opened, store
from benchmarks.retrieval.vector_cache import CachedEmbedder
from souvenir.conversations.agent_search import AgentQuery, AgentSearch
from souvenir.conversations.agents import Agents
from souvenir.conversations.message_search import MessageHit
from souvenir.conversations.messages import Conversations
from souvenir.core.settings import Settings
from souvenir.core.types import Hit, RecordKind, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.models.embedding.factory import embedder_of

TURNS, FACTS = "locomo_turns", "locomo_facts"
STRANGERS = ((TURNS, FACTS), (TURNS, "cranfield"), ("beam_chat", FACTS), (FACTS, "cranfield"), (TURNS, "beam_chat"))
"""Sets that share agents though neither knows anything of the other: two of different kinds, then two of one kind."""

METRICS = ("recall@1", "recall@5", "recall@10", "NDCG@10")
POOL_METRICS = (*METRICS, "evidence@5", "evidence@10")
PARITY = 0.01
"""Evidence that one ranking may cover less than turns alone: a fact says again what a turn said."""

EVERY_KIND = frozenset(RecordKind)
MESSAGES_THEN_MEMORIES = (RecordKind.MESSAGE, RecordKind.MEMORY)

Hits = Sequence[MessageHit | Hit]
"""Best first."""


@dataclass(frozen=True, slots=True)
class PooledQuestion:
    """:param turns: What answers among the turns. :param facts: The same among the facts."""

    text: str
    scope: str
    turns: frozenset[str]
    facts: frozenset[str]


class Shared:
    """An engine with several sets in its agents."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine
        self._search = AgentSearch(engine, Conversations(engine))
        self._names: defaultdict[RecordKind, dict[int, str]] = defaultdict(dict)

    def put(self, data_set: DataSet, documents: Mapping[str, Sequence[Document]]) -> None:
        """:param documents: Some of the set's, by the agent that gets them."""
        for agent in documents:
            Agents(self._engine).create(Scope(agent))
        self._names[RecordKind(data_set.kind)].update(store(replace(data_set, documents=documents), self._engine))

    def finds(self, agent: str, text: str, kinds: frozenset[RecordKind] = EVERY_KIND) -> Hits:
        found = self._search.search(Scope(agent), AgentQuery(text, TOP_K, kinds=kinds))
        if found.degraded:
            raise RuntimeError(f"{agent}: an arm did not run: {found.degraded}")
        return found.hits

    def both(self, agent: str, text: str) -> tuple[Hits, Hits]:
        """Messages alone, and memories alone."""
        messages, memories = (self.finds(agent, text, frozenset((kind,))) for kind in MESSAGES_THEN_MEMORIES)
        return messages, memories

    def names(self, hits: Hits) -> list[str]:
        return [
            self._names[RecordKind.MESSAGE][hit.message.id]
            if isinstance(hit, MessageHit)
            else self._names[RecordKind.MEMORY][hit.memory.id]
            for hit in hits
        ]


@contextmanager
def shared(embedder: CachedEmbedder) -> Iterator[Shared]:
    with tempfile.TemporaryDirectory(prefix="souvenir-bench-") as folder, opened(Path(folder), embedder) as engine:
        yield Shared(engine)


# --- one ranking over the kinds of one conversation ------------------------------------------------------------------


def by_raw_score(messages: Hits, memories: Hits) -> Hits:
    """Both rankings by their scores before calibration."""
    return sorted([*messages, *memories], key=lambda hit: -hit.parts.raw_score)[:TOP_K]


def in_turns_only(messages: Hits, memories: Hits) -> Hits:
    """One of each in turn: reciprocal rank fusion with equal weights, whatever its k."""
    return [hit for pair in zip_longest(messages, memories) for hit in pair if hit is not None][:TOP_K]


Way = Callable[[Shared, str, str], Hits]
"""What is found in an agent for a question."""

WAYS: Mapping[str, Way] = {
    "one ranking": lambda shared, agent, text: shared.finds(agent, text),
    "by raw score": lambda shared, agent, text: by_raw_score(*shared.both(agent, text)),
    "in turns only": lambda shared, agent, text: in_turns_only(*shared.both(agent, text)),
}
ALONE: Mapping[str, Way] = {
    "turns alone": lambda shared, agent, text: shared.both(agent, text)[0],
    "facts alone": lambda shared, agent, text: shared.both(agent, text)[1],
}


def pool_scores(questions: Sequence[PooledQuestion], found: Sequence[Sequence[str]], covers: Covers) -> Table:
    """Every question by POOL_METRICS."""
    return np.array([_pool_scores(*one, covers) for one in zip(questions, found, strict=True)])


Covers = Mapping[str, frozenset[str]]
"""The turns that each fact was drawn from."""


def _pool_scores(question: PooledQuestion, found: Sequence[str], covers: Covers) -> list[float]:
    answers = dict.fromkeys(question.turns | question.facts, 1.0)
    scores = document_scores([(name, 0.0) for name in found], answers)[: len(METRICS)]
    return scores + [_evidence(found[:count], question.turns, covers) for count in (5, TOP_K)]


def _evidence(found: Sequence[str], wanted: frozenset[str], covers: Covers) -> float:
    """The share of the turns that answer which was found, as itself or as a fact that was drawn from it."""
    covered = frozenset[str]().union(*(covers.get(name, frozenset((name,))) for name in found))
    return len(covered & wanted) / len(wanted)


def read_pool(folder: Path) -> tuple[list[PooledQuestion], Covers]:
    """The questions that some turn answers, and what each fact was drawn from."""
    facts = {entry["id"]: _relevant(entry) for entry in entries(folder / FACTS / "queries.jsonl")}
    questions = [
        PooledQuestion(entry["text"], agent_name(entry["scope"]), turns, facts.get(entry["id"], frozenset()))
        for entry in entries(folder / TURNS / "queries.jsonl")
        if (turns := _relevant(entry)) and entry["category"] != ADVERSARIAL
    ]
    covers = {entry["id"]: frozenset(entry["meta"]["evidence"]) for entry in entries(folder / FACTS / "docs.jsonl")}
    return questions, covers


def _relevant(entry: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(id_ for id_, grade in entry["relevant"].items() if grade > 0)


def measure_pool(folder: Path, embedder: CachedEmbedder) -> dict[str, Table]:
    questions, covers = read_pool(folder)
    with shared(embedder) as pool:
        for name in (TURNS, FACTS):
            data_set = read_data_set(folder / name)
            pool.put(data_set, data_set.documents)
        found = {
            way: [pool.names(find(pool, one.scope, one.text)) for one in questions]
            for way, find in {**WAYS, **ALONE}.items()
        }
    return {way: pool_scores(questions, of_way, covers) for way, of_way in found.items()}


# --- sets that have nothing to do with each other ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AmongStrangers:
    """The scores of a set's questions by METRICS: its texts alone, and by each way with another set beside them."""

    alone: Table
    together: Mapping[str, Table]


def measure_strangers(first: DataSet, second: DataSet, embedder: CachedEmbedder) -> dict[str, AmongStrangers]:
    """Of both sets, by name. Sets of one kind are one ranking in every way, and only the first is tried."""
    guests = list(second.documents)
    # The next one's, so that no conversation meets the facts of its own.
    guest_of = {host: guests[(place + 1) % len(guests)] for place, host in enumerate(first.documents)}
    host_of = {guest: host for host, guest in guest_of.items()}
    ways = WAYS if first.kind is not second.kind else {"one ranking": WAYS["one ranking"]}
    with shared(embedder) as together, shared(embedder) as alone:
        together.put(first, first.documents)
        together.put(second, {host: second.documents[guest] for host, guest in guest_of.items()})
        alone.put(first, {f"{first.name} {scope}": documents for scope, documents in first.documents.items()})
        alone.put(second, {f"{second.name} {guest}": second.documents[guest] for guest in host_of})
        found: dict[str, AmongStrangers] = {}
        for data_set, agent_of in ((first, {host: host for host in first.documents}), (second, host_of)):
            asked = [question for question in data_set.questions if question.scope in agent_of]
            own = {scope: f"{data_set.name} {scope}" for scope in agent_of}
            found[data_set.name] = AmongStrangers(
                _asked(alone, asked, own, WAYS["one ranking"]),
                {name: _asked(together, asked, agent_of, way) for name, way in ways.items()},
            )
        return found


def _asked(shared: Shared, questions: Sequence[Question], agent_of: Mapping[str, str], way: Way) -> Table:
    rows = []
    for question in questions:
        names = shared.names(way(shared, agent_of[question.scope], question.text))
        rows.append(document_scores([(name, 0.0) for name in names], question.relevant)[: len(METRICS)])
    return np.array(rows)


# --- the report ------------------------------------------------------------------------------------------------------


def run(folder: Path) -> bool:
    embedder = CachedEmbedder(embedder_of(Settings(query_cache_size=0)), RESULTS_DIR)
    progress("turns with the facts of the same conversations")
    pool = measure_pool(folder, embedder)
    _print_table("pool", POOL_METRICS, {way: estimates(scores) for way, scores in pool.items()})
    ahead = {f"less {way}": differences(pool["one ranking"], scores) for way, scores in pool.items()}
    del ahead["less one ranking"]
    _print_table("one ranking", POOL_METRICS, ahead)
    losses: dict[str, dict[str, list[Estimate]]] = {}
    for first, second in STRANGERS:
        progress(f"{first} with {second}")
        found = measure_strangers(read_data_set(folder / first), read_data_set(folder / second), embedder)
        for name, scores in found.items():
            others = f"{name}, with {second if name == first else first}"
            losses[others] = {way: differences(of_way, scores.alone) for way, of_way in scores.together.items()}
    embedder.save()
    for way in WAYS:
        of_way = {others: by_way[way] for others, by_way in losses.items() if way in by_way}
        _print_table(f"with strangers, {way}, less alone", METRICS, of_way)
    targets = list(_targets(ahead))
    print_targets(targets)
    figures = {
        "pool": {way: _figures(POOL_METRICS, estimates(scores)) for way, scores in pool.items()},
        "one ranking": {way: _figures(POOL_METRICS, found) for way, found in ahead.items()},
        "with strangers": {
            others: {way: _figures(METRICS, of_way) for way, of_way in by_way.items()}
            for others, by_way in losses.items()
        },
    }
    print(f"\n{write_results('retrieval.pool', figures, targets)}")
    return all(target.met for target in targets)


def _targets(ahead: Mapping[str, Sequence[Estimate]]) -> Iterator[Target]:
    """Ahead of either kind in what it finds, and not behind the better one in what evidence that covers."""
    for way in ("less turns alone", "less facts alone"):
        for metric, found in zip(POOL_METRICS, ahead[way], strict=True):
            least = 0.0 if metric in METRICS else -PARITY
            yield Target(f"one ranking {way}: {metric}", found.mean, least, at_least=True)


def _figures(metrics: Sequence[str], found: Sequence[Estimate]) -> dict[str, Any]:
    return {metric: asdict(one) for metric, one in zip(metrics, found, strict=True)}


def _print_table(title: str, metrics: Sequence[str], rows: Mapping[str, Sequence[Estimate]]) -> None:
    shown = [(name, *(f"{one.mean:.3f} ({one.low:.3f} to {one.high:.3f})" for one in of)) for name, of in rows.items()]
    print("\n" + table((title, *metrics), shown) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder a data set")
    return 0 if run(parser.parse_args().data) else 1


if __name__ == "__main__":
    sys.exit(main())
