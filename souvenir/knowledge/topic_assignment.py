"""Assign messages to topics in the background: changed sessions are split into segments, and all are clustered.

The memberships depend on the vectors, terms and mentions of the messages alone (`souvenir.knowledge.segmentation`,
`souvenir.knowledge.clustering`); a topic keeps its id, and the name that a caller gave it, while most of its messages
stay together. The segments of each session are cached, so that a pass reads only changed sessions; changes during the
pass wait for the next one.
"""

from __future__ import annotations

import time
import zlib
from collections import OrderedDict, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from heapq import nlargest
from itertools import chain, groupby, islice

import numpy as np

from souvenir.core.timestamps import utc_now
from souvenir.core.types import Scope
from souvenir.index.analyser import Analyser
from souvenir.knowledge.clustering import Clusters, clusters_of
from souvenir.knowledge.recognition import vocabulary
from souvenir.knowledge.segmentation import Floats, Segment, Turn, segments_of, unit_vectors
from souvenir.knowledge.topic_description import sentences_of, terms_of
from souvenir.knowledge.topic_names import Phrase, UsedPhrases, name_of, parts_of, phrases_of, shown_parts
from souvenir.knowledge.topics import all_texts
from souvenir.memories.engine import MemoryEngine
from souvenir.store import meta, namespaces
from souvenir.store.graph import topics as rows
from souvenir.store.graph.topics import Excerpt, Form, Said, SegmentPlace, TopicContents, TopicMessage, TopicSegment
from souvenir.store.sql import Connection
from souvenir.store.sqlite.generations import history_id
from souvenir.store.vectors import MODEL

MIN_INTERVAL_S = 30.0
"""Minimum interval between two passes over an agent ..."""

INTERVAL_FACTOR = 20.0
"""... and this multiple of the pass's duration, so that passes take at most a twentieth of a core."""

SEGMENTS_KEPT = 50_000
"""Number of segments that are cached, of the agents of the latest passes; some 100 MB with vectors of 384 numbers."""

DESCRIBED = 1_000
"""Number of topics of an agent, those with the most messages, that get a name and a summary when they change."""

MESSAGES_AT_ONCE = 2_000
"""Longer sessions are divided in parts, which bounds memory; a segment that is cut is joined again by clustering."""

SEGMENTS_QUOTED = 6
"""Names and summaries quote so many segments: those most similar to the topic, the latest of equal ones."""

TEXTS_AT_ONCE = 256
"""Phrases that are embedded at once."""

_Segments = dict[int, list[Segment]]
"""The segments of sessions by id."""

_NOTHING = TopicContents({}, {})


@dataclass(frozen=True, slots=True)
class _Draft:
    """The material of which the name and the summary of a topic are chosen.

    :param segments: The messages of the most central ones. :param forms: The concepts that each message mentions.
    :param means: Its mean vector as it is, and centred.
    """

    segments: Sequence[Sequence[TopicMessage]]
    forms: Mapping[int, Sequence[Form]]
    phrases: Sequence[Phrase]
    means: tuple[Floats, Floats]

    def texts(self, name: Sequence[Phrase], terms: Mapping[int, float]) -> tuple[Sequence[Excerpt], Sequence[Excerpt]]:
        """Return the places of the parts of a name, and of the sentences of the summary."""
        summary = sentences_of(self.segments, self.forms, terms, self.means[1], [one.text for one in name])
        return [place for one in name for place in one.places], summary


@dataclass(frozen=True, slots=True)
class _Found:
    """The topics of an agent.

    :param changed: The indexes of those whose messages, or perhaps whose names, changed.
    :param texts: The name and the summary, as places of their parts, of those among these that are described.
    """

    topics: Sequence[TopicContents]
    changed: frozenset[int]
    texts: Mapping[int, tuple[Sequence[Excerpt], Sequence[Excerpt]]]


class TopicAssignment:
    """Runs in the thread of its caller; not reentrant."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine
        self._kept: OrderedDict[tuple[str | None, str | None, int], _Segments] = OrderedDict()
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
            segments = self._segments(connection, namespace_id, taken)
            clusters, topics = clustered(connection, segments)
            before = rows.stored(connection, namespace_id)
            changed = {*_changed(before, topics, taken)}
            largest = nlargest(DESCRIBED, range(len(topics)), key=lambda index: (_messages_in(topics[index]), -index))

            def draft(index: int) -> _Draft:
                return _draft(connection, topics[index], clusters.means[index])

            drafts = {index: draft(index) for index in largest if index in changed}
            stated, own = _names_in_use(connection, namespace_id, before, topics)
            proposed = UsedPhrases(phrase.text for one in drafts.values() for phrase in one.phrases)
            again = {index for index in own if index not in changed and any(part in proposed for part in own[index])}
            drafts |= {index: draft(index) for index in again.intersection(largest)}
            changed |= again
        used = UsedPhrases([*stated, *chain.from_iterable(own[index] for index in own if index not in changed)])
        names = self._names({index: drafts[index] for index in largest if index in drafts}, used)
        texts = {index: one.texts(names[index], topics[index].terms) for index, one in drafts.items()}
        found = _Found(topics, frozenset(changed), texts)
        self._engine.write_rows(lambda connection: _store(connection, namespace_id, list(taken.values()), found))

    def _names(self, drafts: Mapping[int, _Draft], used: UsedPhrases) -> dict[int, list[Phrase]]:
        """Return the names of topics; their phrases are embedded, outside of any transaction.

        :param drafts: In the order in which they choose phrases that no other topic has.
        :param used: Those of other topics; those of these are added.
        """
        texts = sorted({phrase.text for one in drafts.values() if one.means[0].any() for phrase in one.phrases})
        vectors: dict[str, Floats] = {}
        for begin in range(0, len(texts), TEXTS_AT_ONCE):
            some = texts[begin : begin + TEXTS_AT_ONCE]
            embedded = self._engine.models.serving.embedder.embed_documents(some)
            vectors |= zip(some, unit_vectors(embedded.astype(np.float64)), strict=True)
        found: dict[int, list[Phrase]] = {}
        for index, one in drafts.items():
            found[index] = name_of(one.phrases, vectors, one.means, used)
            for part in shown_parts(phrase.text for phrase in found[index]):
                used.add(part)
        return found

    def _segments(self, connection: Connection, namespace_id: int, changed: Mapping[int, int]) -> _Segments:
        """Return the segments of every session by id; only changed ones are read, unless the agent is not cached."""
        key = (history_id(connection), meta.get(connection, MODEL), namespace_id)
        # Another replica may have assigned in between, and so may know of changes that are unknown here.
        known = {} if self._engine.is_shared else self._kept.get(key, {})
        there = rows.session_ids(connection, namespace_id)
        fresh = read_segments(connection, [id_ for id_ in there if id_ in changed or id_ not in known])
        segments = {id_: fresh[id_] if id_ in fresh else known[id_] for id_ in there}
        self._kept[key] = segments
        self._kept.move_to_end(key)
        while len(self._kept) > 1 and sum(map(_count, self._kept.values())) > SEGMENTS_KEPT:
            self._kept.popitem(last=False)
        return segments


def _count(segments: _Segments) -> int:
    return sum(map(len, segments.values()))


def read_segments(connection: Connection, session_ids: Sequence[int]) -> _Segments:
    """Split these sessions into segments."""
    found: _Segments = {id_: [] for id_ in session_ids}
    for session_id, messages in groupby(rows.said_in(connection, session_ids), key=lambda one: one.session_id):
        while turns := [_turn(one) for one in islice(messages, MESSAGES_AT_ONCE)]:
            found[session_id] += segments_of(turns)
    return found


def _turn(one: Said) -> Turn:
    vector = None if one.vector is None else np.frombuffer(one.vector, np.float32)
    terms = tuple({zlib.crc32(term.encode()) for term in _analyser().terms(one.beginning)} - _empty_terms())
    concept_ids = tuple(map(int, one.concepts.split(","))) if one.concepts else ()
    return Turn(one.position, one.is_answer, one.size_bytes, one.at_us, vector, terms, concept_ids)


@cache
def _analyser() -> Analyser:
    """English, whatever the setting: topics are a function of the texts."""
    return Analyser()


@cache
def _empty_terms() -> frozenset[int]:
    """Return the numbers of terms that say nothing of a subject."""
    words = vocabulary.FUNCTION_WORDS | vocabulary.DETERMINERS | vocabulary.PREPOSITIONS | vocabulary.SUBJECTS
    words |= vocabulary.MODALS | vocabulary.AUXILIARIES
    return frozenset(zlib.crc32(term.encode()) for word in words for term in _analyser().terms(word))


def clustered(
    connection: Connection, segments: Mapping[int, Sequence[Segment]]
) -> tuple[Clusters, list[TopicContents]]:
    """Return the topics of these sessions, a function of their segments."""
    places = [(session_id, one) for session_id, of_session in segments.items() for one in of_session]
    clusters = clusters_of([one for _, one in places], [session_id for session_id, _ in places])
    of_topics: list[dict[SegmentPlace, TopicSegment]] = [{} for _ in clusters.mentions]
    for (session_id, one), topic, relevance in zip(places, clusters.topic_of, clusters.relevance, strict=True):
        if topic >= 0:
            shown = TopicSegment(one.last, one.messages, one.first_at_us, one.last_at_us, relevance)
            of_topics[topic][SegmentPlace(session_id, one.first)] = shown
    topics = zip(of_topics, terms_of(connection, clusters), strict=True)
    return clusters, [TopicContents(of_topic, terms) for of_topic, terms in topics]


def _draft(connection: Connection, topic: TopicContents, means: tuple[Floats, Floats]) -> _Draft:
    central = sorted(topic.segments, key=lambda one: (-topic.segments[one].relevance, -topic.segments[one].last_at_us))
    segments = [rows.messages_of(connection, one, topic.segments[one].last) for one in central[:SEGMENTS_QUOTED]]
    forms = rows.forms(connection, [message.id for segment in segments for message in segment])
    return _Draft(segments, forms, phrases_of(segments, forms), means)


def _messages_in(topic: TopicContents) -> int:
    return sum(segment.messages for segment in topic.segments.values())


def _changed(
    before: Mapping[int, TopicContents], topics: Sequence[TopicContents], sessions: Collection[int]
) -> list[int]:
    """Return the indexes of topics that consist of other messages than a stored one, or of changed sessions."""
    known = {topic.extent for topic in before.values()}
    return [
        index
        for index, topic in enumerate(topics)
        if topic.extent not in known or any(place.session_id in sessions for place in topic.segments)
    ]


def _names_in_use(
    connection: Connection, namespace_id: int, before: Mapping[int, TopicContents], topics: Sequence[TopicContents]
) -> tuple[list[str], dict[int, list[str]]]:
    """Return the parts of names that callers and models stated, and those of names by messages, by index in `topics`.

    Names are compared as if nothing were hidden.
    """
    index_of = {topic.extent: index for index, topic in enumerate(topics)}
    texts = all_texts(connection, namespace_id, frozenset())
    stated = [part for one in texts.values() for part in parts_of(one.stated_name or "")]
    there = ((index_of.get(before[id_].extent), one.own_name) for id_, one in texts.items() if id_ in before)
    return stated, {index: parts_of(name) for index, name in there if index is not None}


def _store(connection: Connection, namespace_id: int, places: Sequence[int], found: _Found) -> None:
    if namespace_id not in namespaces.ids(connection):
        return
    rows.take(connection, places)
    before, now = rows.stored(connection, namespace_id), utc_now()
    kept = kept_ids(before, rows.named_ids(connection, namespace_id), found.topics)
    rows.remove(connection, before.keys() - kept.values())
    there = {place for topic in found.topics for place in topic.segments}
    rows.remove_segments(connection, {place for topic in before.values() for place in topic.segments} - there)
    for index, topic in enumerate(found.topics):
        topic_id = kept[index] if index in kept else rows.insert(connection, namespace_id, now)
        rows.change(connection, topic_id, before.get(topic_id, _NOTHING), topic)
        if index in found.changed:
            rows.put_texts(connection, topic_id, *found.texts.get(index, ((), ())))
    rows.remove_empty(connection, namespace_id)


def kept_ids(before: Mapping[int, TopicContents], named: set[int], found: Sequence[TopicContents]) -> dict[int, int]:
    """Return the stored topic that each new one continues, by its index in `found`: that with most shared messages.

    Topics with a stated name choose first.
    """
    old, new = _runs(before.items()), _runs(enumerate(found))
    shared: defaultdict[tuple[int, int], int] = defaultdict(int)
    for session_id in old.keys() & new.keys():
        ours, theirs = iter(old[session_id]), iter(new[session_id])
        one, other = next(ours, None), next(theirs, None)
        while one and other:
            both = min(one[1], other[1]) - max(one[0], other[0]) + 1
            if both > 0:
                shared[one[2], other[2]] += both
            if one[1] <= other[1]:
                one = next(ours, None)
            else:
                other = next(theirs, None)
    kept: dict[int, int] = {}
    taken: set[int] = set()
    for topic_id, index in sorted(shared, key=lambda pair: (pair[0] not in named, -shared[pair], pair)):
        if index not in kept and topic_id not in taken:
            kept[index] = topic_id
            taken.add(topic_id)
    return kept


def _runs(topics: Iterable[tuple[int, TopicContents]]) -> dict[int, list[tuple[int, int, int]]]:
    """Return the first and last positions of the segments, with their topic, by session and in order."""
    found: defaultdict[int, list[tuple[int, int, int]]] = defaultdict(list)
    for topic, contents in topics:
        for place, segment in contents.segments.items():
            found[place.session_id].append((place.first, segment.last, topic))
    return {session_id: sorted(runs) for session_id, runs in found.items()}
