"""Agreement of topics with the labelled subjects of messages, and the names that topics get.

    python -m benchmarks.topics                    the histories for development
    python -m benchmarks.topics --aside            those that were set aside while the constants were chosen
    python -m benchmarks.topics --data FOLDER      in addition the labelled sessions of FOLDER/locomo_turns

Each history is stored in an engine of its own with the real model; the topic of each message is compared with its
subject. The peer is k-means of the vectors of the messages, which is given the number of subjects.
A name agrees with a subject if they have a word stem in common.
"""

from __future__ import annotations

import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

import numpy as np

from benchmarks.labelled import engine_of, parser
from benchmarks.report import Target, conclude, table
from benchmarks.topics.agreement import adjusted_rand_index, k_means
from benchmarks.topics.histories import History, histories
from souvenir.conversations.messages import Conversations
from souvenir.core.settings import Settings
from souvenir.core.types import Embedder, Scope
from souvenir.index.analyser import Analyser
from souvenir.knowledge.clustering import clusters_of
from souvenir.knowledge.segmentation import Segment, Turn, segments_of
from souvenir.knowledge.services import KnowledgeServices
from souvenir.models.embedding.factory import embedder_of
from souvenir.store.graph import export_rows, topics

AGENT = Scope("agent", "benchmark")

BATCH = 64

ARI, SECONDS = 0.85, 100.0

TARGETED = ("short_sessions", "long_sessions")

SPEED_MESSAGES, SPEED_SESSION, SPEED_SUBJECTS, SPEED_DIM = 100_000, 24, 200, 384

Described = tuple[str, str, str, str]
"""The subject of most of a topic's messages, its messages, its name, and its summary."""


@dataclass(slots=True)
class NameScores:
    """How many topics have a name, and how many of these say a word of the subject of most of their messages.

    :param subjects: The subjects of topics, by history; `named` those of which a topic has a name.
    """

    topics: int = 0
    with_name: int = 0
    agreeing: int = 0
    subjects: set[tuple[str, str]] = field(default_factory=set)
    named: set[tuple[str, str]] = field(default_factory=set)

    def add(self, history: str, described: Sequence[Described]) -> None:
        analyser = Analyser()
        for subject, _, name, _ in described:
            self.topics += 1
            self.subjects.add((history, subject))
            if name:
                self.with_name += 1
                self.named.add((history, subject))
                self.agreeing += not {*analyser.terms(name)}.isdisjoint(analyser.terms(subject))

    def line(self) -> str:
        return (
            f"{self.with_name} of {self.topics} topics and {len(self.named)} of {len(self.subjects)} subjects "
            f"are named, {self.agreeing} topics with a word of the subject"
        )


def measured(history: History, embedder: Embedder) -> tuple[int, float, float, list[Described]]:
    """Return the number of topics, the agreement of topics and of k-means, and how the topics are described."""
    with engine_of(embedder) as engine:
        graph, stored = KnowledgeServices.open(engine), Conversations(engine)
        drafts = [one.draft for one in history.messages]
        added = [
            message
            for begin in range(0, len(drafts), BATCH)
            for message in stored.add(AGENT, drafts[begin : begin + BATCH])
        ]
        graph.indexer.catch_up()
        with engine.namespace(AGENT) as (connection, namespace):
            assert namespace is not None
            vectors = [export_rows.message_vector(connection, message.id) for message in added]
            topic_of: dict[tuple[int, int], int] = {}
            for topic_id, topic in topics.stored(connection, namespace.id).items():
                for place, segment in topic.segments.items():
                    for position in range(place.first, segment.last + 1):
                        topic_of[place.session_id, position] = topic_id
        labelled = [index for index, one in enumerate(history.messages) if one.subject is not None]
        subjects = [history.messages[index].subject or "" for index in labelled]
        # A message without a topic is alone.
        found = [topic_of.get((added[index].session_row, added[index].position), -1 - index) for index in labelled]
        points = np.stack([vector for index in labelled if (vector := vectors[index]) is not None])
        ours, peer = (adjusted_rand_index(groups, subjects) for groups in (found, k_means(points, len(set(subjects)))))
        return len(set(found)), ours, peer, _described(graph, found, subjects)


def _described(graph: KnowledgeServices, found: Sequence[int], subjects: Sequence[str]) -> list[Described]:
    of_topic: defaultdict[int, Counter[str]] = defaultdict(Counter)
    for topic_id, subject in zip(found, subjects, strict=True):
        of_topic[topic_id][subject] += 1
    described = []
    for topic_id, counts in of_topic.items():
        if topic_id >= 0:
            named = graph.topics.details(AGENT, topic_id).named
            [(subject, most)] = counts.most_common(1)
            described.append((subject, f"{most} of {counts.total()}", named.name, named.summary or ""))
    return described


def pass_s() -> float:
    """Return the duration of segmentation and clustering of 100,000 messages."""
    random = np.random.default_rng(9)
    subjects = random.normal(size=(SPEED_SUBJECTS, SPEED_DIM))
    sessions = []
    for _ in range(0, SPEED_MESSAGES, SPEED_SESSION):
        turns, subject = [], 0
        for position in range(SPEED_SESSION):
            if position % 8 == 0:
                subject = int(random.integers(SPEED_SUBJECTS))
            vector = subjects[subject] + 1.2 * random.normal(size=SPEED_DIM)
            own, shared = (np.minimum(random.zipf(1.3, count), 1_000).tolist() for count in (4, 30))
            terms = {*shared, *(1_000 * (subject + 1) + one for one in own)}
            unit = (vector / np.linalg.norm(vector)).astype(np.float32)
            turns.append(Turn(position, position % 2 == 1, 120, position, unit, tuple(terms), tuple(own)))
        sessions.append(turns)
    begin = time.process_time()
    segments: list[Segment] = []
    session_of: list[int] = []
    for session, turns in enumerate(sessions):
        segments += segments_of(turns)
        session_of += [session] * (len(segments) - len(session_of))
    clusters_of(segments, session_of)
    return time.process_time() - begin


def run(data: Path | None, *, aside: bool) -> int:
    rows: list[tuple[str, ...]] = []
    described: list[tuple[str, ...]] = []
    figures: dict[str, object] = {}
    by_kind: defaultdict[str, list[float]] = defaultdict(list)
    by_name: defaultdict[str, NameScores] = defaultdict(NameScores)
    with closing(embedder_of(Settings(query_cache_size=0))) as embedder:
        for history in histories(data, aside=aside):
            groups, ours, peer, names = measured(history, embedder)
            described += [(history.name, *one) for one in names]
            by_kind[history.kind].append(ours)
            by_name[history.kind].add(history.name, names)
            subjects = len({one.subject for one in history.messages if one.subject})
            rows.append((history.kind, history.name, f"{subjects}", f"{groups}", f"{ours:.3f}", f"{peer:.3f}"))
            figures[history.name] = {"topics": groups, "ari": ours, "k-means": peer}
    print(table(("history", "subject", "messages", "name", "summary"), described))
    print("\n" + table(("kind", "history", "subjects", "topics", "ARI", "k-means, k given"), rows))
    for kind, values in by_kind.items():
        print(f"{kind}: mean ARI {fmean(values):.3f}, least {min(values):.3f}; {by_name[kind].line()}")
    taken_s = pass_s()
    targets = [Target(f"mean ARI, {kind}", fmean(by_kind[kind]), ARI, at_least=True) for kind in TARGETED]
    targets.append(Target(f"CPU seconds for {SPEED_MESSAGES:,} messages", taken_s, SECONDS))
    found_names = {kind: one.line() for kind, one in by_name.items()}
    return conclude("topics", {"agreement": figures, "names": found_names, "pass_s": taken_s}, targets)


def main() -> int:
    options = parser(__doc__)
    options.add_argument("--data", type=Path, help="folder of locomo_turns")
    arguments = options.parse_args()
    return run(arguments.data, aside=arguments.aside)


if __name__ == "__main__":
    sys.exit(main())
