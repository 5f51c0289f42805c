"""Assign sessions to topics in the background: changed sessions are read, and all are clustered by their concepts.

The result depends on the mentions alone (`souvenir.knowledge.clustering`); a topic keeps its id, and the name that a
caller gave it, while most of its sessions stay together. Counts of each session are cached, so that a pass reads only
changed sessions; changes during the pass wait for the next one.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence

import numpy as np

from souvenir.core.timestamps import utc_now
from souvenir.core.types import Scope
from souvenir.knowledge.clustering import TERMS_OF_TOPIC, Counted, clusters_of
from souvenir.memories.engine import MemoryEngine
from souvenir.store import namespaces
from souvenir.store.graph import concept_similarity
from souvenir.store.graph import topics as rows
from souvenir.store.graph.topics import SessionRelevance, TopicContents
from souvenir.store.sql import Connection
from souvenir.store.sqlite.generations import history_id

MIN_INTERVAL_S = 30.0
"""Minimum interval between two passes over an agent ..."""

INTERVAL_FACTOR = 20.0
"""... and this multiple of the pass's duration, so that passes take at most a twentieth of a core."""

AGENTS_KEPT = 16
"""Number of agents whose counts are cached; 100,000 messages take about 5 MB."""

_Counts = dict[int, Counted]

_NOTHING = TopicContents({}, {})


class TopicAssignment:
    """Runs in the thread of its caller; not reentrant."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine
        self._kept: OrderedDict[tuple[str | None, int], _Counts] = OrderedDict()
        self._due_s: dict[int, float] = {}

    def assign(self, *, only_due: bool = False) -> None:
        """Assign topics for every agent with changed sessions.

        :param only_due: Skip agents that were processed recently.
        """
        with self._engine.namespace(Scope()) as (connection, _):
            names = rows.namespaces(connection)
        for namespace_id, name in names:
            if only_due and not self._engine.owns(name):
                continue
            begin_s = time.monotonic()
            if not only_due or begin_s >= self._due_s.get(namespace_id, begin_s):
                self._assign(namespace_id)
                end_s = time.monotonic()
                self._due_s[namespace_id] = end_s + max(MIN_INTERVAL_S, INTERVAL_FACTOR * (end_s - begin_s))

    def _assign(self, namespace_id: int) -> None:
        with self._engine.namespace(Scope()) as (connection, _):
            taken = rows.unsorted(connection, namespace_id)
            counts = self._counts(connection, namespace_id, taken)
            found = sorted_by(connection, counts)
        self._engine.write_rows(lambda connection: _store(connection, namespace_id, list(taken.values()), found))

    def _counts(self, connection: Connection, namespace_id: int, changed: Mapping[int, int]) -> _Counts:
        """Return the counts of every session by id; only changed ones are read, unless the agent is not cached."""
        key = (history_id(connection), namespace_id)
        # Another replica may have assigned in between, and so may know of changes that are unknown here.
        known = {} if self._engine.is_shared else self._kept.get(key, {})
        there = rows.session_ids(connection, namespace_id)
        again = [id_ for id_ in there if id_ in changed or id_ not in known]
        fresh = counted(connection, again)
        counts = {id_: fresh[id_] if id_ in fresh else known[id_] for id_ in there}
        self._kept[key] = counts
        self._kept.move_to_end(key)
        while len(self._kept) > AGENTS_KEPT:
            self._kept.popitem(last=False)
        return counts


def counted(connection: Connection, session_ids: Sequence[int]) -> _Counts:
    """Return the number of messages that mention each concept, by session."""
    none = Counted(np.empty(0, np.int64), np.empty(0, np.int64))
    found = dict.fromkeys(session_ids, none)
    for session, concepts in rows.mentioned_in(connection, session_ids):
        ids, messages = np.unique(np.fromstring(concepts, dtype=np.int64, sep=","), return_counts=True)
        found[session] = Counted(ids, messages.astype(np.int64))
    return found


def sorted_by(connection: Connection, counts: Mapping[int, Counted]) -> list[TopicContents]:
    """Return the topics of these sessions, a function of their mentions."""
    speaking = [id_ for id_, of_session in counts.items() if len(of_session.concept_ids)]
    clusters = clusters_of([counts[id_] for id_ in speaking])
    sessions: list[dict[int, SessionRelevance]] = [{} for _ in clusters.terms]
    for one in clusters.memberships:
        sessions[one.topic][speaking[one.session]] = SessionRelevance(one.relevance, one.is_primary)
    keys = concept_similarity.keys(connection, {concept for terms in clusters.terms for concept, _ in terms})
    found = []
    for of_topic, terms in zip(sessions, clusters.terms, strict=True):
        # Keys break ties, since ids depend on the order of discovery and would differ after a rebuild.
        best = sorted(terms, key=lambda term: (-term[1], keys[term[0]]))[:TERMS_OF_TOPIC]
        found.append(TopicContents(of_topic, {concept: round(weight / best[0][1], 2) for concept, weight in best}))
    return found


def _store(connection: Connection, namespace_id: int, places: Sequence[int], found: Sequence[TopicContents]) -> None:
    if namespace_id not in namespaces.ids(connection):
        return
    rows.take(connection, places)
    before, now = rows.stored(connection, namespace_id), utc_now()
    kept = kept_ids(before, rows.named_ids(connection, namespace_id), found)
    rows.remove(connection, before.keys() - kept.values())
    for place, topic in enumerate(found):
        topic_id = kept[place] if place in kept else rows.insert(connection, namespace_id, now)
        rows.change(connection, topic_id, before.get(topic_id, _NOTHING), topic, now)
    rows.remove_empty(connection, namespace_id)


def kept_ids(before: Mapping[int, TopicContents], named: set[int], found: Sequence[TopicContents]) -> dict[int, int]:
    """Return the stored topic that each new one continues, by its index in `found`: the one with most shared sessions.

    Topics with a stated name choose first.
    """
    place_of = {session: place for place, topic in enumerate(found) for session in topic.own}
    shared: dict[tuple[int, int], int] = {}
    for topic_id, topic in before.items():
        for session in topic.own:
            if session in place_of:
                pair = (topic_id, place_of[session])
                shared[pair] = shared.get(pair, 0) + 1
    kept: dict[int, int] = {}
    taken: set[int] = set()
    for topic_id, place in sorted(shared, key=lambda pair: (pair[0] not in named, -shared[pair], pair)):
        if place not in kept and topic_id not in taken:
            kept[place] = topic_id
            taken.add(topic_id)
    return kept
