"""Strategies of the engine's state machine: texts, queries, drafts and patches."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random

from hypothesis import strategies as st

from souvenir.core.types import (
    FactsBy,
    Filters,
    MemoryDraft,
    MemoryPatch,
    SearchQuery,
    SourceFilter,
    SourceMatch,
    Weights,
)

WORDS = (
    "garden bread violin harbour winter Berlin teacher engine mountain letter river kitchen pianist ticket "
    "planted planting fly.io v2.1 2023-05-08 getUserName the of 東京都 café gardens"
).split()
RARE = "bamtago dulrilo figsumo kovtago nexrilo pyrsumo".split()
"""So that what neighbours lend each other can be told apart."""
SLIPS = ["gaden", "mountian", "kitchn", "violen", "zzzz", "???"]
OPENINGS = ["", "", "", "", "", "in May 2023 ", "on May 9 ", "What was said yesterday of ", "the latest "]
TAGS = ["Garden", "garden", "ｐlanted", "Berlin-teacher", "東京都", "elsewhere"]
MAY = datetime(2023, 5, 8, 12, tzinfo=UTC)
NOW = MAY + timedelta(days=2000)
SOURCES = ["a", "a", "a", "a/b", "ab", "a/b/c", "chat"]
SCOPES: list[tuple[str, ...] | None] = [None, None, ("a",), ("ab", "chat")]
METADATA: list[dict[str, object]] = [
    {},
    {},
    {"lang": "en"},
    {"lang": "dé", "n": 1},
    {"n": 1.0},
    {"n": True, "lang": None},
    {"tags": ["x", 1]},
    {"tags": {"é": "ü", "a": 1}},
]


def make_texts(chance: Random) -> list[str]:
    """Return short texts, the same with another word, and some of several passages."""
    short = [" ".join(chance.choices(WORDS, k=chance.randint(1, 12))) for _ in range(18)]
    short += [f"{text} {word}" for text, word in zip(short, RARE, strict=False)]
    longer = [f"{text} {chance.choice(WORDS)}" for text in short[:12]]
    long = [". ".join(" ".join(chance.choices(WORDS, k=9)) for _ in range(size)) for size in (7, 14, 30)]
    return [*short, *longer, *long]


def make_source_filter(chance: Random) -> SourceFilter:
    return SourceFilter(chance.choice([*SOURCES, "b", "nowhere"]), chance.choice(list(SourceMatch)))


def make_query(chance: Random) -> SearchQuery:
    filters = chance.choice(
        [
            Filters(include_archived=True),
            Filters(include_archived=chance.random() < 0.5, metadata=chance.choice(METADATA)),
            Filters(sources=(make_source_filter(chance), make_source_filter(chance))),
            Filters(
                sources=(make_source_filter(chance),),
                since=MAY + timedelta(days=chance.randint(0, 2)),
                until=chance.choice([None, MAY + timedelta(days=chance.randint(1, 5))]),
            ),
            Filters(tags=tuple(chance.sample(TAGS, chance.randint(1, 2))), all_tags=chance.random() < 0.5),
        ]
    )
    return SearchQuery(
        text=chance.choice(OPENINGS) + " ".join(chance.choices([*WORDS, *SLIPS, *RARE], k=chance.randint(1, 4))),
        top_k=chance.choice([1, 3, 50]),
        hybrid=chance.random() < 0.75,
        filters=filters,
        weights=Weights(
            vector=chance.choice([0.7, 0.7, 0.0, 0.4, 1.0]),
            recency=chance.choice([0.0, 0.0, 0.3]),
            confidence=chance.choice([0.0, 0.0, 0.2]),
        ),
        # No cosine that two of these texts can have.
        threshold=chance.choice([None, None, None, 0.1234]),
        now=NOW,
    )


TEXTS = make_texts(Random(1))
QUERIES = [make_query(Random(number)) for number in range(400)]

# Few draws a step, so that a run has room for many steps.
namespaces = st.sampled_from(["default"] * 4 + ["ann"])
texts = st.sampled_from(TEXTS)
sources = st.sampled_from(SOURCES)
source_filters = st.builds(SourceFilter, st.sampled_from([*SOURCES, "b"]), st.sampled_from(list(SourceMatch)))
metadata = st.sampled_from(METADATA)
moments = st.sampled_from([MAY] * 4 + [MAY + timedelta(days=days) for days in range(5)])
marks = st.sampled_from([(False, False)] * 8 + [(True, False), (False, True)])
tags = st.lists(st.sampled_from(TAGS), max_size=3).map(tuple)
facts = st.just(()) | st.lists(st.sampled_from([*TEXTS[:20], TEXTS[-2]]), max_size=3).map(tuple)
makers = st.sampled_from(FactsBy)
drafts = st.builds(
    lambda marks, **named: MemoryDraft(**named, pinned=marks[0], archived=marks[1]),
    text=texts,
    source=sources,
    metadata=metadata,
    key=st.sampled_from([None, None, None, "k1", "k2"]),
    document_at=st.none() | moments,
    marks=marks,
    tags=tags,
    facts=facts,
    facts_by=makers,
)
keyed_drafts = st.builds(
    MemoryDraft,
    text=texts,
    source=sources,
    metadata=metadata,
    key=st.sampled_from(["k1", "k2"]),
    document_at=moments,
    tags=tags,
    facts=facts,
)
removed_keys = st.sampled_from([{"lang": None}, {"n": None, "lang": "fr"}])
patches = st.one_of(
    st.builds(MemoryPatch, text=texts),
    st.builds(MemoryPatch, text=texts, source=sources, archived=st.booleans()),
    st.builds(MemoryPatch, source=sources, metadata=metadata | removed_keys, pinned=st.booleans()),
    st.builds(MemoryPatch, archived=st.booleans()),
    st.builds(MemoryPatch, document_at=moments),
    st.builds(MemoryPatch, remove_document_at=st.just(True)),
    st.builds(MemoryPatch, text=st.none() | texts, facts=facts, facts_by=makers),
    st.builds(MemoryPatch, tags=tags, add_tags=tags, remove_tags=tags),
    st.builds(MemoryPatch, add_tags=tags, remove_tags=tags, pinned=st.booleans()),
)
