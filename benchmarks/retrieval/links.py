"""Links of users in the ranking: what a search gains or loses by links between memories.

    python -m benchmarks.retrieval.links --data FOLDER

FOLDER holds sets of memories; docs/ranking.md describes their files. Each set is stored once and searched with
different links: between answers of one question (the best case), between memories of one session, from each memory to
the most similar ones (as an extraction links), and between random ones (the worst case).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from random import Random

import numpy as np

from benchmarks.report import RESULTS_DIR, Target, percentile_ms, print_targets, progress, table, write_results
from benchmarks.retrieval.certainty import Table, differences, estimates
from benchmarks.retrieval.data_sets import DataSet, read_data_set
from benchmarks.retrieval.metrics import document_scores
from benchmarks.retrieval.own import opened, store
from benchmarks.retrieval.vector_cache import CachedEmbedder
from souvenir.core.settings import Settings
from souvenir.core.timestamps import utc_now
from souvenir.core.types import Link, LinkType, PassageKind, Scope, SearchQuery
from souvenir.learning.novelty import LINK_SIMILARITY, MAX_RELATED
from souvenir.memories.engine import MemoryEngine
from souvenir.models.embedding.factory import embedder_of
from souvenir.store.admin import transfers
from souvenir.store.transaction import Transaction

SETS = ("plain_questions", "locomo_facts", "cranfield")
WEIGHTS = (0.1, 0.3, 1.0)
METRICS = ("recall@1", "recall@5 of 5", "recall@10", "NDCG@10")
MOST_LOST, MOST_LOST_AT_RANDOM = 0.005, 0.02
SEED = 8

HEAD_CHARS = 500
"""Of a text, the part whose similarity is compared: it fits the window of the model."""

Pairs = set[tuple[str, str]]
"""Ids of two documents, the lower one first."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A set in an engine. :param names: The document of each memory."""

    data_set: DataSet
    engine: MemoryEngine
    embedder: CachedEmbedder
    names: Mapping[int, str]

    def search(self, weight: float) -> tuple[Table, list[list[int]], list[float]]:
        """Return the scores of every question by METRICS, the first ten of each, and the seconds of each."""
        scores, found, seconds = [], [], []
        for question in self.data_set.questions:
            of_count = []
            for count in (5, 10):
                query = SearchQuery(question.text, count, link_weight=weight)
                begin = time.perf_counter()
                hits = self.engine.search(Scope(question.scope), query).hits
                seconds.append(time.perf_counter() - begin)
                of_count.append([hit.memory.id for hit in hits])
            five, ten = (
                document_scores([(self.names[id_], 0.0) for id_ in ids], question.relevant) for ids in of_count
            )
            scores.append([ten[0], five[1], ten[2], ten[3]])
            found.append(of_count[1])
        return np.array(scores), found, seconds

    def link(self, pairs: Pairs) -> None:
        """Replace all links."""
        ids = {name: id_ for id_, name in self.names.items()}
        for scope, documents in self.data_set.documents.items():
            mine = {document.id for document in documents}
            links = [
                Link(ids[one], ids[other], LinkType.RELATED_TO.value, utc_now())
                for one, other in sorted(pairs)
                if one in mine
            ]

            def work(tx: Transaction, links: Sequence[Link] = links) -> None:
                tx.connection.execute(
                    "DELETE FROM links WHERE from_id IN (SELECT id FROM memories WHERE namespace_id = ?)",
                    (tx.namespace_id,),
                )
                for link in links:
                    transfers.insert_link(tx.connection, link)

            self.engine.write(Scope(scope), work)


def _pairs(pairs: Iterator[tuple[str, str]]) -> Pairs:
    return {(min(pair), max(pair)) for pair in pairs if pair[0] != pair[1]}


def of_answers(stored: Stored) -> Pairs:
    return _pairs(pair for question in stored.data_set.questions for pair in combinations(question.relevant, 2))


def of_sessions(stored: Stored) -> Pairs:
    """Each memory with the next one of its session."""
    last: dict[tuple[str, str | None], str] = {}
    found: list[tuple[str, str]] = []
    for scope, documents in stored.data_set.documents.items():
        for document in documents:
            before = last.get((scope, document.session))
            last[scope, document.session] = document.id
            if before is not None:
                found.append((before, document.id))
    return _pairs(iter(found))


def of_similar(stored: Stored) -> Pairs:
    """Each memory with the most similar earlier ones, as many and as similar as an extraction would link."""
    found: list[tuple[str, str]] = []
    for documents in stored.data_set.documents.values():
        vectors = stored.embedder.embed_documents([document.text[:HEAD_CHARS] for document in documents])
        for row in range(1, len(documents)):
            cosines = vectors[:row] @ vectors[row]
            best = np.argsort(-cosines)[:MAX_RELATED]
            found += [(documents[row].id, documents[one].id) for one in best if cosines[one] >= LINK_SIMILARITY]
    return _pairs(iter(found))


def at_random(stored: Stored, count: int) -> Pairs:
    """`count` links from each memory to any others of its scope."""
    chance = Random(SEED)
    return _pairs(
        (document.id, chance.choice(documents).id)
        for documents in stored.data_set.documents.values()
        for document in documents
        for _ in range(count)
    )


LINKS: Mapping[str, Callable[[Stored], Pairs]] = {
    "answers of one question": of_answers,
    "next of the session": of_sessions,
    "most similar": of_similar,
    "1 random": lambda stored: at_random(stored, 1),
    "5 random": lambda stored: at_random(stored, 5),
}


def measure(stored: Stored) -> Iterator[tuple[str, float, Table, Table]]:
    """Yield links, weight, the scores and those without links."""
    without, plain, base_s = stored.search(0.0)
    for weight in WEIGHTS:
        if stored.search(weight)[1] != plain:
            raise RuntimeError("without links, a weight of links changed a ranking")
    progress(f"{stored.data_set.name}: {percentile_ms(base_s, 50):.2f} ms a search without links")
    for name, make in LINKS.items():
        pairs = make(stored)
        stored.link(pairs)
        for weight in WEIGHTS:
            scores, _, seconds = stored.search(weight)
            progress(f"{name}, {len(pairs)} links, {weight}: {percentile_ms(seconds, 50):.2f} ms a search")
            yield name, weight, scores, without


def run(folder: Path, names: Sequence[str]) -> bool:
    embedder = CachedEmbedder(embedder_of(Settings(query_cache_size=0)), RESULTS_DIR)
    figures: dict[str, object] = {}
    targets: list[Target] = []
    for name in names:
        data_set = read_data_set(folder / name)
        if data_set.kind is not PassageKind.MEMORY:
            raise SystemExit(f"{name} holds messages, which have no links; name a set of memories")
        rows: list[tuple[str, ...]] = []
        with tempfile.TemporaryDirectory(prefix="souvenir-bench-") as data_dir, opened(Path(data_dir), embedder) as own:
            for links, weight, scores, without in measure(Stored(data_set, own, embedder, store(data_set, own))):
                if not rows:
                    rows.append(("none", "", *map(str, estimates(without))))
                gained = differences(scores, without)
                shown = [f"{one.mean:+.3f} ({one.low:+.3f} to {one.high:+.3f})" for one in gained]
                rows.append((links, str(weight), *shown))
                of_metric = {metric: asdict(one) for metric, one in zip(METRICS, gained, strict=True)}
                figures[f"{name}, {links}, {weight}"] = of_metric
                if weight == WEIGHTS[0]:
                    least = -(MOST_LOST_AT_RANDOM if "random" in links else MOST_LOST)
                    targets.append(Target(f"{name}, {links}: recall@10", gained[2].mean, least, at_least=True))
        print("\n" + table((name, "weight", *METRICS), rows) + "\n")
    embedder.save()
    print_targets(targets)
    print(f"\n{write_results('retrieval.links', figures, targets)}")
    return all(target.met for target in targets)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with one folder a data set")
    parser.add_argument("--sets", nargs="+", default=SETS)
    arguments = parser.parse_args()
    return 0 if run(arguments.data, arguments.sets) else 1


if __name__ == "__main__":
    sys.exit(main())
