"""Agreement of topics with the subjects of a history.

    python -m benchmarks.topics --data FOLDER

FOLDER holds `beam_chat` and `locomo_turns`; docs/ranking.md describes their files. The conversations of each set, or
of both, are mixed into the history of one agent: which conversation a session is of is what topics should find. Beside
them stands k-means of the sessions' mean vectors, which is told how many conversations there are.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from benchmarks.report import RESULTS_DIR, Target, print_targets, progress, table, write_results
from benchmarks.retrieval.data_sets import entries
from benchmarks.retrieval.vector_cache import CachedEmbedder
from benchmarks.topics.agreement import Agreement, agreement
from benchmarks.topics.peer import k_means
from souvenir.core.settings import Settings
from souvenir.core.types import ConceptKind, Embedder, MessageRole
from souvenir.knowledge.clustering import Counted, clusters_of
from souvenir.knowledge.recognition.extraction import mentions_in
from souvenir.models.embedding.factory import embedder_of

EMBEDDED_CHARS = 500
"""Of each message, the first, which the model reads whole."""

BATCH = 64

ARI, SECONDS = 0.8, 5.0

SPEED_SESSIONS, SPEED_SUBJECTS, SPEED_MENTIONS = 1_000, 40, 120


@dataclass(frozen=True, slots=True)
class History:
    """:param messages_a_session: Sessions are cut into parts of so many messages; None leaves them as they are."""

    name: str
    sets: Sequence[str]
    messages_a_session: int | None


HISTORIES = (
    History("8 chats, sessions", ("beam_chat",), None),
    History("8 chats, 20 messages each", ("beam_chat",), 20),
    History("8 chats, 10 messages each", ("beam_chat",), 10),
    History("4 conversations, sessions", ("locomo_turns",), None),
    History("both, 20 messages each", ("beam_chat", "locomo_turns"), 20),
)


@dataclass(frozen=True, slots=True)
class Said:
    """A message. :param subject: Its conversation."""

    subject: str
    session: str
    text: str
    keys: Sequence[str]


def read(folder: Path, name: str) -> list[Said]:
    found = []
    for entry in entries(folder / name / "docs.jsonl"):
        meta, text = entry["meta"], entry["text"]
        if meta["speaker"] not in {role.value for role in MessageRole}:
            text = text.split(": ", 1)[-1]
        role = MessageRole.ASSISTANT if meta["speaker"] == MessageRole.ASSISTANT else MessageRole.USER
        without = {ConceptKind.DATE, ConceptKind.QUANTITY}
        keys = [one.key for one in mentions_in(text, role) if one.kind not in without]
        found.append(Said(meta["scope"], meta["session"], text, keys))
    return found


def sessions_of(history: History, said: Mapping[str, Sequence[Said]]) -> dict[str, list[Said]]:
    whole: defaultdict[str, list[Said]] = defaultdict(list)
    for name in history.sets:
        for one in said[name]:
            whole[one.session].append(one)
    size = history.messages_a_session
    if size is None:
        return dict(whole)
    return {
        f"{session}/{begin}": messages[begin : begin + size]
        for session, messages in whole.items()
        for begin in range(0, len(messages), size)
    }


def topics_of(sessions: Mapping[str, Sequence[Said]]) -> list[int]:
    """The topic of each session; one that is in none is alone."""
    ids: dict[str, int] = {}
    counts = []
    for messages in sessions.values():
        mentioned = Counter(ids.setdefault(key, len(ids)) for one in messages for key in one.keys)
        pairs = np.array(sorted(mentioned.items()), dtype=np.int64).reshape(-1, 2)
        counts.append(Counted(pairs[:, 0], pairs[:, 1]))
    found = {one.session: one.topic for one in clusters_of(counts).memberships if one.is_primary}
    return [found.get(place, -1 - place) for place in range(len(counts))]


def means_of(sessions: Mapping[str, Sequence[Said]], embedder: Embedder) -> list[int]:
    """What k-means makes of the sessions' mean vectors."""
    texts = list({one.text[:EMBEDDED_CHARS] for messages in sessions.values() for one in messages})
    vectors = dict[str, np.ndarray]()
    for begin in range(0, len(texts), BATCH):
        some = texts[begin : begin + BATCH]
        vectors.update(zip(some, embedder.embed_documents(some), strict=True))
    means = [
        np.mean([vectors[one.text[:EMBEDDED_CHARS]] for one in messages], axis=0) for messages in sessions.values()
    ]
    points = np.stack(means) / np.linalg.norm(means, axis=1, keepdims=True)
    subjects = {messages[0].subject for messages in sessions.values()}
    return list(k_means(points.astype(np.float32), len(subjects)))


def pass_s() -> float:
    """What clustering takes of as many sessions as 100,000 messages are."""
    random = np.random.default_rng(9)
    counts = []
    for _ in range(SPEED_SESSIONS):
        own = 1_000 * random.integers(SPEED_SUBJECTS) + np.minimum(random.zipf(1.3, SPEED_MENTIONS // 2), 1_000)
        common = 100_000 + np.minimum(random.zipf(1.2, SPEED_MENTIONS // 2), 20_000)
        ids, messages = np.unique(np.concatenate([own, common]), return_counts=True)
        counts.append(Counted(ids.astype(np.int64), messages.astype(np.int64)))
    begin = time.perf_counter()
    clusters_of(counts)
    return time.perf_counter() - begin


def row(name: str, way: str, sessions: int, subjects: int, found: Agreement) -> tuple[str, ...]:
    figures = (f"{value:.3f}" for value in (found.ari, found.nmi, found.purity))
    return name, f"{sessions}", f"{subjects}", way, f"{found.groups}", *figures


def run(folder: Path, cache: Path) -> bool:
    said = {name: read(folder, name) for name in ("beam_chat", "locomo_turns")}
    progress(", ".join(f"{len(messages)} messages of {name}" for name, messages in said.items()))
    embedder = CachedEmbedder(embedder_of(Settings(query_cache_size=0)), cache)
    rows, figures, least = [], {}, 1.0
    for history in HISTORIES:
        sessions = sessions_of(history, said)
        subjects = [messages[0].subject for messages in sessions.values()]
        topics = agreement(topics_of(sessions), subjects)
        peer = agreement(means_of(sessions, embedder), subjects)
        embedder.save()
        for way, found in (("topics", topics), ("k-means, k given", peer)):
            rows.append(row(history.name, way, len(sessions), len(set(subjects)), found))
            figures[f"{history.name}: {way}"] = asdict(found)
        least = min(least, topics.ari)
    print("\n" + table(("history", "sessions", "subjects", "", "groups", "ARI", "NMI", "purity"), rows))
    taken_s = pass_s()
    targets = [
        Target("least ARI of topics", least, ARI, at_least=True),
        Target(f"seconds for {SPEED_SESSIONS:,} sessions", taken_s, SECONDS),
    ]
    print_targets(targets)
    print(f"\n{write_results('topics', {'agreement': figures, 'pass_s': taken_s}, targets)}")
    return all(target.met for target in targets)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the sets")
    parser.add_argument("--cache", type=Path, help="where vectors are kept (default: the folder of results)")
    arguments = parser.parse_args()
    cache = arguments.cache or RESULTS_DIR
    cache.mkdir(parents=True, exist_ok=True)
    return 0 if run(arguments.data, cache) else 1


if __name__ == "__main__":
    sys.exit(main())
