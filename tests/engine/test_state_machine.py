"""Any sequence of verbs, restarts, crashes and restores leaves the engine as a dictionary would be, and search as well.

After every step the database and the indexes must agree with each other, and what is stored with the model.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import TypeVar

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from memory_engine import DUPLICATE_SIMILARITY, IDENTICAL_SIMILARITY, MemoryEngine
from souvenir.errors import SouvenirError
from souvenir.index.analyser import Analyser
from souvenir.settings import Settings
from souvenir.types import (
    AddAction,
    Filters,
    Memory,
    MemoryDraft,
    MemoryPatch,
    OnDuplicate,
    Scope,
    SearchQuery,
    SkipReason,
    SourceFilter,
    SourceMatch,
    Weights,
)
from tests.engine.model import Model
from tests.fake_embedder import FakeEmbedder
from tests.reference.agreement import TOLERANCE, assert_equals_reference
from tests.reference.search import ReferenceSearch

T = TypeVar("T")

WORDS = (
    "garden bread violin harbour winter Berlin teacher engine mountain letter river kitchen pianist ticket "
    "planted planting fly.io v2.1 2023-05-08 getUserName the of 東京都 café gardens"
).split()
RARE = "bamtago dulrilo figsumo kovtago nexrilo pyrsumo".split()
"""So that what neighbours lend each other can be told apart."""
SLIPS = ["gaden", "mountian", "kitchn", "violen", "zzzz", "???"]
OPENINGS = ["", "", "", "", "", "in May 2023 ", "on May 9 ", "What was said yesterday of ", "the latest "]
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
    """Short ones, the same with a word more, and some of several passages."""
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
drafts = st.builds(
    lambda text, source, metadata, key, document_at, marks: MemoryDraft(
        text, source, metadata, key, document_at, *marks
    ),
    text=texts,
    source=sources,
    metadata=metadata,
    key=st.sampled_from([None, None, None, "k1", "k2"]),
    document_at=st.none() | moments,
    marks=marks,
)
keyed_drafts = st.builds(
    MemoryDraft, text=texts, source=sources, metadata=metadata, key=st.sampled_from(["k1", "k2"]), document_at=moments
)
removed_keys = st.sampled_from([{"lang": None}, {"n": None, "lang": "fr"}])
patches = st.one_of(
    st.builds(MemoryPatch, text=texts),
    st.builds(MemoryPatch, text=texts, source=sources, archived=st.booleans()),
    st.builds(MemoryPatch, source=sources, metadata=metadata | removed_keys, pinned=st.booleans()),
    st.builds(MemoryPatch, archived=st.booleans()),
    st.builds(MemoryPatch, document_at=moments),
    st.builds(MemoryPatch, remove_document_at=st.just(True)),
)


class EngineMachine(RuleBasedStateMachine):
    """Drives the engine and the model side by side. `ids` holds every id ever given out, deleted ones too."""

    ids = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.opened = ExitStack()
        self.folders = 0
        self.embedder = FakeEmbedder()
        self.reference = ReferenceSearch(self.embedder, Analyser())
        self.model = Model()
        self.backups: dict[str, Model] = {}
        self.greatest_id = 0

    @initialize(
        target=ids,
        roomy=st.booleans(),
        drafts=st.lists(drafts.filter(lambda draft: draft.key is None), min_size=4, max_size=8),
        first_query=st.integers(0, len(QUERIES) - 1),
    )
    def start(self, roomy: bool, drafts: list[MemoryDraft], first_query: int):
        self.queries = count(first_query)
        self.root = Path(self.opened.enter_context(TemporaryDirectory(prefix="souvenir-test-")))
        self.data_dir = self.root / "data"
        self.open(roomy)
        self.opened.callback(lambda: self.engine.close())  # noqa: PLW0108 - a restart opens another
        return self.add_batch_to("default", drafts)

    def open(self, roomy: bool) -> None:
        """Without room, a namespace's index is dropped as soon as that of the other one is loaded."""
        settings = Settings(data_dir=self.data_dir, max_backups=3)
        if not roomy:
            settings = settings.model_copy(update={"index_memory_mb": 0})
        self.engine = MemoryEngine.open(settings, self.embedder)

    def close_engine(self) -> None:
        """The one that is open by then."""
        self.engine.close()

    def teardown(self) -> None:
        self.opened.close()

    # --- what every verb needs -------------------------------------------------------------------------------------

    def attempt(self, verb: Callable[[], T], refused: Callable[[], object]) -> T | None:
        """The verb's outcome; or None if the engine refused, for the reason for which the model refuses."""
        try:
            return verb()
        except SouvenirError as error:
            with pytest.raises(type(error)):
                refused()
            return None

    def taken_at(self, namespace: str, memory_id: int) -> datetime:
        return self.engine.get(Scope(namespace), [memory_id])[memory_id].updated_at

    def given(self, *new_ids: int) -> None:
        """New ids grow for ever."""
        for new_id in new_ids:
            assert new_id > self.greatest_id
            self.greatest_id = new_id

    def similar(self, namespace: str, text: str) -> dict[int, float]:
        return self.reference.passages.similarities(self.model.held(namespace).values(), text)

    def on_the_edge(self, namespace: str, text: str) -> bool:
        """Whether rounding decides if the text is a duplicate."""
        greatest = max(self.similar(namespace, text).values(), default=0.0)
        return min(abs(greatest - DUPLICATE_SIMILARITY), abs(greatest - IDENTICAL_SIMILARITY)) < TOLERANCE

    # --- writing ---------------------------------------------------------------------------------------------------

    @rule(target=ids, namespace=namespaces, draft=drafts)
    def add(self, namespace: str, draft: MemoryDraft):
        outcome = self.attempt(
            lambda: self.engine.add(Scope(namespace), draft), lambda: self.model.add(namespace, 0, draft, NOW)
        )
        if outcome is None or outcome.id is None:
            return multiple()
        self.given(outcome.id)
        self.model.add(namespace, outcome.id, draft, self.taken_at(namespace, outcome.id))
        return outcome.id

    @rule(
        target=ids, namespace=namespaces, draft=drafts, mode=st.sampled_from([OnDuplicate.SKIP, OnDuplicate.SUPERSEDE])
    )
    def add_unless_there(self, namespace: str, draft: MemoryDraft, mode: OnDuplicate):
        if self.on_the_edge(namespace, draft.text):
            return multiple()
        similar = self.similar(namespace, draft.text)
        greatest = max(similar.values(), default=0.0)
        collides = greatest >= DUPLICATE_SIMILARITY
        blockers = [id_ for id_, similarity in similar.items() if similarity > greatest - TOLERANCE]
        held = self.model.held(namespace)
        repeats = {held[blocker].text.split() == draft.text.split() for blocker in blockers}
        if len(repeats) > 1:
            return multiple()  # which of the equally similar ones blocks decides
        identical = greatest >= IDENTICAL_SIMILARITY and repeats == {True}
        replaces = collides and mode is OnDuplicate.SUPERSEDE and not identical

        def refused() -> None:
            if not replaces:
                assert not collides
                self.model.copy().add(namespace, 0, draft, NOW)
            else:
                for blocker in blockers:
                    self.supersede_in(self.model.copy(), namespace, blocker, 0, draft, NOW)

        outcome = self.attempt(lambda: self.engine.add(Scope(namespace), draft, on_duplicate=mode), refused)
        if outcome is None:
            return multiple()
        assert (outcome.blocker is not None) == collides
        if outcome.blocker is not None:
            assert similar[outcome.blocker.id] == pytest.approx(greatest, abs=TOLERANCE)
            assert outcome.similarity == pytest.approx(greatest, abs=TOLERANCE)
        if outcome.id is None:
            assert outcome.blocker is not None
            blocked_by_pin = replaces and outcome.blocker.pinned
            assert collides
            assert not replaces or blocked_by_pin
            assert outcome.action is AddAction.SKIPPED
            assert outcome.reason is (
                SkipReason.PINNED_BLOCKER
                if blocked_by_pin
                else SkipReason.IDENTICAL
                if identical
                else SkipReason.DUPLICATE
            )
            return multiple()
        self.given(outcome.id)
        at = self.taken_at(namespace, outcome.id)
        if replaces:
            assert outcome.action is AddAction.SUPERSEDED
            assert outcome.blocker is not None
            self.supersede_in(self.model, namespace, outcome.blocker.id, outcome.id, draft, at)
        else:
            assert outcome.action is AddAction.ADDED
            self.model.add(namespace, outcome.id, draft, at)
        return outcome.id

    @staticmethod
    def supersede_in(model: Model, namespace: str, old_id: int, new_id: int, draft: MemoryDraft, at: datetime) -> None:
        """A draft without a key takes over that of the memory it replaces."""
        key = draft.key or model.memory(namespace, old_id).key
        keyed = MemoryDraft(
            draft.text, draft.source, draft.metadata, key, draft.document_at, draft.pinned, draft.archived
        )
        model.supersede(namespace, old_id, new_id, keyed, at)

    @rule(target=ids, namespace=namespaces, drafts=st.lists(drafts, max_size=4), deduplicate=st.booleans())
    def add_batch(self, namespace: str, drafts: list[MemoryDraft], deduplicate: bool):
        return self.add_batch_to(namespace, drafts, deduplicate=deduplicate)

    def add_batch_to(self, namespace: str, drafts: list[MemoryDraft], *, deduplicate: bool = False):
        deduplicate = deduplicate and not any(self.on_the_edge(namespace, draft.text) for draft in drafts)
        stored = [
            draft
            for draft in drafts
            if not deduplicate or max(self.similar(namespace, draft.text).values(), default=0.0) < DUPLICATE_SIMILARITY
        ]

        def all_in(model: Model, new_ids: list[int], at: datetime) -> None:
            for new_id, draft in zip(new_ids, stored, strict=True):
                model.add(namespace, new_id, draft, at)

        new_ids = self.attempt(
            lambda: self.engine.add_batch(Scope(namespace), drafts, deduplicate=deduplicate),
            lambda: all_in(self.model.copy(), [-1 - at for at in range(len(stored))], NOW),
        )
        if not new_ids:
            assert new_ids is None or not stored
            return multiple()
        self.given(*new_ids)
        all_in(self.model, new_ids, self.taken_at(namespace, new_ids[0]))
        return multiple(*new_ids)

    @rule(target=ids, namespace=namespaces, drafts=st.lists(keyed_drafts, min_size=1, max_size=3))
    def upsert(self, namespace: str, drafts: list[MemoryDraft]):
        outcomes = self.engine.upsert(Scope(namespace), drafts)
        at = self.taken_at(namespace, outcomes[0].id)
        for draft, outcome in zip(drafts, outcomes, strict=True):
            assert draft.key is not None
            held = self.model.keyed(namespace, draft.source, draft.key)
            assert outcome.created == (held is None)
            assert held is None or outcome.id == held.id
            self.model.upsert(namespace, outcome.id, draft, at)
        created = [outcome.id for outcome in outcomes if outcome.created]
        self.given(*created)
        return multiple(*created)

    @rule(namespace=namespaces, memory_id=ids, patch=patches)
    def patch(self, namespace: str, memory_id: int, patch: MemoryPatch) -> None:
        after = self.attempt(
            lambda: self.engine.patch(Scope(namespace), memory_id, patch),
            lambda: self.model.update(namespace, memory_id, patch, NOW),
        )
        if after is not None:
            self.model.update(namespace, memory_id, patch, after.updated_at)

    @rule(
        target=ids,
        namespace=namespaces,
        memory_id=ids,
        text=texts,
        source=st.none() | sources,
        added=st.none() | metadata,
    )
    def supersede(self, namespace: str, memory_id: int, text: str, source: str | None, added: dict[str, object] | None):
        def in_model(model: Model, new_id: int, at: datetime) -> None:
            old = model.memory(namespace, memory_id)
            draft = MemoryDraft(text, source or old.source, {**old.metadata, **(added or {})}, key=old.key)
            model.supersede(namespace, memory_id, new_id, draft, at)

        outcome = self.attempt(
            lambda: self.engine.supersede(Scope(namespace), memory_id, text=text, source=source, metadata=added),
            lambda: in_model(self.model, 0, NOW),
        )
        if outcome is None:
            return multiple()
        self.given(outcome.new_id)
        in_model(self.model, outcome.new_id, self.taken_at(namespace, outcome.new_id))
        return outcome.new_id

    @rule(target=ids, namespace=namespaces, one=ids, other=ids, text=texts, source=sources)
    def merge(self, namespace: str, one: int, other: int, text: str, source: str):
        if one == other:
            return multiple()
        outcome = self.attempt(
            lambda: self.engine.merge(Scope(namespace), [one, other], text=text, source=source),
            lambda: self.model.merge(namespace, [one, other], 0, text, source, NOW),
        )
        if outcome is None:
            return multiple()
        assert outcome.archived == tuple(sorted((one, other)))
        self.given(outcome.id)
        self.model.merge(namespace, [one, other], outcome.id, text, source, self.taken_at(namespace, outcome.id))
        return outcome.id

    @rule(namespace=namespaces, memory_ids=st.lists(ids, max_size=3))
    def archive(self, namespace: str, memory_ids: list[int]) -> None:
        held = self.model.held(namespace)
        living = {id_ for id_ in memory_ids if id_ in held and not held[id_].archived}
        assert self.engine.archive(Scope(namespace), memory_ids) == len(living)
        for memory_id in living:
            self.model.archive(namespace, memory_id, self.taken_at(namespace, memory_id))

    @rule(namespace=namespaces, memory_id=ids, force=st.booleans())
    def delete(self, namespace: str, memory_id: int, force: bool) -> None:
        deleted = self.attempt(
            lambda: self.engine.delete(Scope(namespace), memory_id, force=force),
            lambda: self.model.delete(namespace, memory_id, force=force),
        )
        if deleted is not None:
            self.model.delete(namespace, memory_id, force=force)

    @rule(namespace=namespaces, memory_ids=st.lists(ids, max_size=4))
    def delete_many(self, namespace: str, memory_ids: list[int]) -> None:
        held, wanted = self.model.held(namespace), list(dict.fromkeys(memory_ids))
        outcome = self.engine.delete_many(Scope(namespace), memory_ids)
        assert outcome.missing_ids == tuple(id_ for id_ in wanted if id_ not in held)
        assert outcome.skipped_pinned == tuple(id_ for id_ in wanted if id_ in held and held[id_].pinned)
        assert outcome.deleted_ids == tuple(id_ for id_ in wanted if id_ in held and not held[id_].pinned)
        for memory_id in outcome.deleted_ids:
            self.model.delete(namespace, memory_id)

    @rule(namespace=namespaces, source=source_filters)
    def delete_by_source(self, namespace: str, source: SourceFilter) -> None:
        expected = self.model.unpinned_of(namespace, source)
        before = self.model.copy()
        outcome = self.engine.delete_by_source(Scope(namespace), source)
        assert list(outcome.deleted_ids) == expected
        if expected:
            self.backups[self.engine.backups()[0].name] = before
        for memory_id in expected:
            self.model.delete(namespace, memory_id)

    # --- keeping ---------------------------------------------------------------------------------------------------

    @rule()
    def snapshot(self) -> None:
        self.engine.snapshot()

    @rule(roomy=st.booleans())
    def restart(self, roomy: bool) -> None:
        self.engine.close()
        self.open(roomy)

    @rule(roomy=st.booleans())
    def crash(self, roomy: bool) -> None:
        """Go on with the files as they lie there while the engine is open."""
        self.folders += 1
        copy = self.root / f"data{self.folders}"
        shutil.copytree(self.data_dir, copy, ignore=shutil.ignore_patterns("*.partial"))
        self.engine.close()
        self.data_dir = copy
        self.open(roomy)

    @rule()
    def back_up(self) -> None:
        self.backups[self.engine.back_up(reason="manual").name] = self.model.copy()

    @rule(number=st.integers(0, 3))
    def restore(self, number: int) -> None:
        kept = [backup.name for backup in self.engine.backups()]
        if not kept:
            return
        name = kept[number % len(kept)]
        self.backups[self.engine.restore(name).name] = self.model
        self.model = self.backups[name].copy()
        assert name in [backup.name for backup in self.engine.backups()]

    # --- what always holds -----------------------------------------------------------------------------------------

    @invariant()
    def the_database_and_the_indexes_agree(self) -> None:
        assert list(self.engine.check()) == []

    @invariant()
    def what_is_stored_is_what_the_model_holds(self) -> None:
        for namespace in ("default", "ann"):
            page = self.engine.page(Scope(namespace), offset=0, limit=10_000)
            assert list(page.memories) == self.model.listing(namespace)
            assert page.total == self.engine.count(Scope(namespace)) == len(self.model.held(namespace))

    @invariant()
    def searches_answer_as_the_slow_search(self) -> None:
        """Another query at every step: a run asks many of them, and Hypothesis chooses only the first."""
        for namespace in ("default", "ann"):
            number = next(self.queries)
            query, paths = QUERIES[number % len(QUERIES)], SCOPES[number % len(SCOPES)]
            memories = self.model.listing(namespace)
            result = self.engine.search(Scope(namespace, sources=paths), query)
            passages = self.reference.passages.of_memories(memories)
            assert_equals_reference(result, self.reference.rank(passages, query, NOW, paths=paths), query.top_k)
            by_id: dict[int, Memory] = {memory.id: memory for memory in memories}
            for hit in result.hits:
                assert hit.memory == by_id[hit.memory.id] or paths is not None
                assert hit.memory.text == by_id[hit.memory.id].text


EngineMachine.TestCase.settings = hypothesis_settings(max_examples=60, stateful_step_count=30, deadline=None)
TestEngine = EngineMachine.TestCase
