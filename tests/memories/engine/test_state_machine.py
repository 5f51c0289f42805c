"""Any sequence of operations, restarts, crashes and restores leaves engine and search equal to a dictionary model.

After every step, the database must agree with the indexes and with the model. tests/store/postgres drives the same
machine with three replicas on PostgreSQL.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from functools import cache
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule
from pydantic import SecretStr

from souvenir.core.errors import SouvenirError
from souvenir.core.settings import Settings
from souvenir.core.types import (
    AddAction,
    FactsBy,
    Filters,
    Listing,
    Memory,
    MemoryDraft,
    MemoryPatch,
    OnDuplicate,
    Scope,
    SkipReason,
    SourceFilter,
)
from souvenir.index.analyser import Analyser
from souvenir.memories.engine import DUPLICATE_SIMILARITY, IDENTICAL_SIMILARITY, MemoryEngine
from souvenir.memories.fact_splitting import Split
from souvenir.memories.fact_writes import write_facts
from tests.fake_embedder import FakeTokenEmbedder
from tests.memories.engine.drawn import (
    NOW,
    QUERIES,
    SCOPES,
    drafts,
    facts,
    keyed_drafts,
    makers,
    metadata,
    namespaces,
    patches,
    source_filters,
    sources,
    texts,
)
from tests.memories.engine.model import Model, without_fact_ids
from tests.reference.agreement import TOLERANCE, assert_equals_reference
from tests.reference.search import ReferenceSearch
from tests.reference.tags import all_of, allowed
from tests.thoroughness import sampled

T = TypeVar("T")

pytestmark = pytest.mark.sqlite_only(reason="tests/store/postgres/test_state_machines.py drives the machine there")


@cache
def settings_of_all() -> Settings:
    """They are read once: the machine opens its engine hundreds of times."""
    return Settings(max_backups=3)


class EngineMachine(RuleBasedStateMachine):
    """Drives the engine and the model together. `ids` holds every id ever issued, including deleted ones."""

    ids = Bundle("ids")

    def __init__(self) -> None:
        super().__init__()
        self.opened = ExitStack()
        self.folders = 0
        self.embedder = FakeTokenEmbedder()
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
        """With a minimal memory budget, loading a namespace's index drops the other one."""
        settings = settings_of_all()
        changes = {
            "data_dir": self.data_dir,
            "database_url": self.database_url,
            "index_memory_mb": settings.index_memory_mb if roomy else 0,
        }
        self.engine = MemoryEngine.open(settings.model_copy(update=changes), self.embedder)

    def teardown(self) -> None:
        self.opened.close()

    @property
    def database_url(self) -> SecretStr | None:
        """The database in PostgreSQL, instead of a file."""
        return None

    # --- what every verb needs -------------------------------------------------------------------------------------

    def attempt(self, verb: Callable[[], T], refused: Callable[[], object]) -> T | None:
        """Return the outcome of an operation; None if engine and model refused for the same reason."""
        try:
            return verb()
        except SouvenirError as error:
            with pytest.raises(type(error)):
                refused()
            return None

    def taken_at(self, namespace: str, memory_id: int) -> datetime:
        return self.engine.get(Scope(namespace), [memory_id])[memory_id].updated_at

    def given(self, *new_ids: int) -> None:
        """Record a new id; ids always grow."""
        for new_id in new_ids:
            assert new_id > self.greatest_id
            self.greatest_id = new_id

    def similar(self, namespace: str, text: str) -> dict[int, float]:
        return self.reference.passages.similarities(self.model.held(namespace).values(), text)

    def on_the_edge(self, namespace: str, text: str) -> bool:
        """Return whether rounding decides if the text is a duplicate."""
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
        """A draft without a key inherits that of the memory it replaces."""
        key = draft.key or model.memory(namespace, old_id).key
        model.supersede(namespace, old_id, new_id, replace(draft, key=key), at)

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
            lambda: self.engine.update(Scope(namespace), memory_id, patch),
            lambda: self.model.update(namespace, memory_id, patch, NOW),
        )
        if after is not None:
            self.model.update(namespace, memory_id, patch, after.memory.updated_at)

    @rule(namespace=namespaces, memory_id=ids, facts=facts, maker=makers)
    def split(self, namespace: str, memory_id: int, facts: tuple[str, ...], maker: FactsBy) -> None:
        memory = self.engine.get(Scope(namespace), [memory_id]).get(memory_id)
        if memory is None:
            assert memory_id not in self.model.held(namespace)
            return
        found = Split(tuple(dict.fromkeys(facts)), maker)
        written = write_facts(self.engine, Scope(namespace), memory, found)
        assert written is not None
        new = [fact.created_at for fact in written.facts if fact not in memory.facts]
        self.model.split(namespace, memory_id, facts, maker, new[0] if new else NOW)

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
        if expected and self.engine.keeps_backups:
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
        """Continue with a copy of the files of the open engine."""
        self.folders += 1
        copy = self.root / f"data{self.folders}"
        shutil.copytree(self.data_dir, copy, ignore=shutil.ignore_patterns("*.partial"))
        self.engine.close()
        self.data_dir = copy
        self.open(roomy)

    # --- what always holds -----------------------------------------------------------------------------------------

    @invariant()
    def the_database_and_the_indexes_agree(self) -> None:
        assert list(self.engine.check()) == []

    @invariant()
    def what_is_stored_is_what_the_model_holds(self) -> None:
        for namespace in ("default", "ann"):
            page = self.engine.page(Scope(namespace), offset=0, limit=10_000)
            assert list(map(without_fact_ids, page.memories)) == self.model.listing(namespace)
            self.tagged_memories_are_listed(namespace)
            assert page.total == self.engine.count(Scope(namespace)) == len(self.model.held(namespace))

        with self.engine.namespace(Scope()) as (connection, _):
            waiting = {memory_id for (memory_id,) in connection.execute("SELECT memory_id FROM unsplit")}
        assert waiting == self.model.waiting

    def tagged_memories_are_listed(self, namespace: str) -> None:
        wanted = Filters(tags=("garden", "PLANTED"))
        page = self.engine.page(Scope(namespace), Listing(tags=wanted.tags), offset=0, limit=10_000)
        held = self.model.listing(namespace)
        assert [one.id for one in page.memories] == [one.id for one in held if allowed(all_of(one.tags), wanted)]

    @invariant()
    def searches_answer_as_the_slow_search(self) -> None:
        """Uses another query at every step: Hypothesis only chooses the first one."""
        for namespace in ("default", "ann"):
            number = next(self.queries)
            query, paths = QUERIES[number % len(QUERIES)], SCOPES[number % len(SCOPES)]
            memories = self.model.listing(namespace)
            result = self.engine.search(Scope(namespace, sources=paths), query)
            passages = self.reference.passages.of_memories(memories)
            assert_equals_reference(result, self.reference.rank(passages, query, NOW, paths=paths), query.top_k)
            by_id: dict[int, Memory] = {memory.id: memory for memory in memories}
            for hit in result.hits:
                assert without_fact_ids(hit.memory) == by_id[hit.memory.id] or paths is not None
                assert hit.memory.text == by_id[hit.memory.id].text
                assert {one.fact for one in hit.facts} <= set(hit.memory.facts)


class EngineWithBackups(EngineMachine):
    """The engine on a file, whose backups are restored too."""

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


EngineWithBackups.TestCase.settings = hypothesis_settings(
    max_examples=sampled(8, 60), stateful_step_count=30, deadline=None
)
TestEngine = EngineWithBackups.TestCase
