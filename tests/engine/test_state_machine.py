"""Any sequence of verbs, restarts, crashes and restores leaves the engine as a dictionary would be, and search as well.

After every step the database and the indexes must agree with each other, and what is stored with the model.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
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
from tests.reference_search import TOLERANCE, ReferenceSearch, assert_equals_reference

T = TypeVar("T")

WORDS = (
    "garden bread violin harbour winter Berlin teacher engine mountain letter river kitchen doctor ticket "
    "planted planting fly.io v2.1 2023-05-08 getUserName the of 東京都 café gardens"
).split()
SLIPS = ["gaden", "mountian", "kitchn", "violen", "zzzz"]
LONG = [" ".join(f"{word} {WORDS[at % 7]} note{at}." for at, word in enumerate(WORDS * 4)) for _ in range(1)]
LONG += [" ".join(WORDS[start:] * 9) for start in (3, 8)]
MAY = datetime(2023, 5, 8, 12, tzinfo=UTC)
NOW = MAY + timedelta(days=2000)

namespaces = st.sampled_from(["default", "ann"])
texts = st.one_of(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join),
    st.tuples(st.sampled_from(LONG), st.sampled_from(WORDS)).map(". ".join),
)
sources = st.sampled_from(["a", "a/b", "ab", "a/b/c", "chat"])
source_filters = st.builds(
    SourceFilter, st.sampled_from(["a", "a/b", "b", "ab", "chat", "nowhere"]), st.sampled_from(list(SourceMatch))
)
metadata_values = st.sampled_from(["en", "dé", 1, 1.0, True, None, ["x", 1], {"é": "ü"}])
metadata = st.dictionaries(st.sampled_from(["lang", "n", "tags"]), metadata_values, max_size=2)
moments = st.integers(0, 5).map(lambda days: MAY + timedelta(days=days))
seldom = st.integers(0, 9).map(lambda number: number == 0)
drafts = st.builds(
    MemoryDraft,
    text=texts,
    source=sources,
    metadata=metadata,
    key=st.sampled_from([None, None, None, "k1", "k2"]),
    document_at=st.none() | moments,
    pinned=seldom,
    archived=seldom,
)
keyed_drafts = st.builds(
    MemoryDraft, text=texts, source=sources, metadata=metadata, key=st.sampled_from(["k1", "k2"]), document_at=moments
)
patches = st.builds(
    MemoryPatch,
    text=st.none() | texts,
    document_at=st.none() | moments,
    remove_document_at=seldom,
    source=st.none() | sources,
    metadata=st.none() | metadata,
    pinned=st.none() | st.booleans(),
    archived=st.none() | st.booleans(),
).filter(lambda patch: patch != MemoryPatch())
queries = st.builds(
    SearchQuery,
    text=st.lists(st.sampled_from([*WORDS, *SLIPS]), min_size=1, max_size=4).map(" ".join) | st.just("???"),
    top_k=st.sampled_from([1, 3, 5, 50]),
    hybrid=st.sampled_from([True, True, False]),
    filters=st.one_of(
        st.builds(Filters, include_archived=st.booleans()),
        st.builds(Filters, sources=st.lists(source_filters, min_size=1, max_size=2).map(tuple)),
        st.builds(Filters, metadata=metadata),
        st.builds(
            Filters,
            sources=st.lists(source_filters, max_size=2).map(tuple),
            since=st.none() | moments,
            until=st.none() | moments,
            metadata=st.one_of(st.just({}), metadata),
            include_archived=st.booleans(),
        ),
    ),
    weights=st.builds(
        Weights,
        vector=st.sampled_from([0.7, 0.7, 0.0, 0.4, 1.0]),
        recency=st.sampled_from([0.0, 0.3]),
        confidence=st.sampled_from([0.0, 0.2]),
    ),
    # Not a cosine that two of these texts can have.
    threshold=st.sampled_from([None, None, 0.1234, 0.4321]),
    now=st.just(NOW),
)


class EngineMachine(RuleBasedStateMachine):
    """Drives the engine and the model side by side. `ids` holds every id ever given out, deleted ones too."""

    ids = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp(prefix="souvenir-test-"))
        self.folders = 0
        self.embedder = FakeEmbedder()
        self.reference = ReferenceSearch(self.embedder, Analyser())
        self.model = Model()
        self.backups: dict[str, Model] = {}
        self.greatest_id = 0

    @initialize(roomy=st.booleans())
    def start(self, roomy: bool) -> None:
        self.data_dir = self.root / "data"
        self.open(roomy)

    def open(self, roomy: bool) -> None:
        """Without room, a namespace's index is dropped as soon as that of the other one is loaded."""
        settings = Settings(data_dir=self.data_dir, max_backups=3)
        if not roomy:
            settings = settings.model_copy(update={"index_memory_mb": 0})
        self.engine = MemoryEngine.open(settings, self.embedder)

    def teardown(self) -> None:
        self.engine.close()
        shutil.rmtree(self.root)

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
        return self.reference.similarities(self.model.held(namespace).values(), text)

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
        replaces = collides and mode is OnDuplicate.SUPERSEDE and greatest < IDENTICAL_SIMILARITY

        def refused() -> None:
            blockers = [id_ for id_, similarity in similar.items() if similarity > greatest - TOLERANCE]
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
            identical = greatest >= IDENTICAL_SIMILARITY
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

    # --- searching -------------------------------------------------------------------------------------------------

    @rule(namespace=namespaces, query=queries)
    def search(self, namespace: str, query: SearchQuery) -> None:
        memories = self.model.listing(namespace)
        result = self.engine.search(Scope(namespace), query)
        assert_equals_reference(result, self.reference.rank(memories, query, NOW), query.top_k)
        by_id: dict[int, Memory] = {memory.id: memory for memory in memories}
        assert [hit.memory for hit in result.hits] == [by_id[hit.memory.id] for hit in result.hits]

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


EngineMachine.TestCase.settings = hypothesis_settings(max_examples=60, stateful_step_count=30, deadline=None)
TestEngine = EngineMachine.TestCase
