"""Resolution of conflicts between memories."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from souvenir.core.errors import Forbidden
from souvenir.core.types import OriginClass, Scope
from souvenir.memories.conflicts import Conflicts, Resolution, Review
from souvenir.memories.engine import MemoryEngine
from souvenir.store.memories.reads import CONFLICTS_WITH, SUPERSEDES
from tests.memories.engine.verbs import ANN, DEFAULT, add, memory, stored

MONDAY = datetime(2025, 3, 3, tzinfo=UTC)
TUESDAY, WEDNESDAY = MONDAY + timedelta(days=1), MONDAY + timedelta(days=2)


def flag(engine: MemoryEngine, flagger: int, other: int, scope: Scope = DEFAULT) -> None:
    engine.write(scope, lambda tx: tx.link(flagger, other, CONFLICTS_WITH))


def flags(engine: MemoryEngine) -> list[tuple[int, int]]:
    links = [link for one in stored(engine) for link in one.links if link.type == CONFLICTS_WITH]
    return [(link.from_id, link.to_id) for link in links]


def settled(resolution: Resolution) -> list[tuple[int, int, int]]:
    return [(one.kept.id, one.archived.id, one.flag[0]) for one in resolution.resolved]


def changes(engine: MemoryEngine) -> int:
    with engine.namespace(DEFAULT) as (connection, _):
        return int(connection.execute("SELECT count(*) FROM history").get)


def test_the_newer_memory_wins_and_ends_the_validity_of_the_older_one(engine: MemoryEngine):
    older = add(engine, "the office is in Rome", "facts", document_at=MONDAY)
    newer = add(engine, "the office is in Oslo", "facts", document_at=TUESDAY)
    flag(engine, newer, older)
    conflicts = Conflicts(engine)
    before = changes(engine)
    dry = conflicts.resolve(DEFAULT, dry_run=True)
    assert settled(dry) == [(newer, older, newer)]
    assert (changes(engine), flags(engine)) == (before, [(newer, older)])
    assert settled(conflicts.resolve(DEFAULT, dry_run=False)) == settled(dry)
    lost, won = memory(engine, older), memory(engine, newer)
    assert (lost.archived, lost.valid_to, lost.superseded_by) == (True, TUESDAY, newer)
    assert [(link.to_id, link.type) for link in won.links] == [(older, SUPERSEDES)]
    said = won.metadata["conflict_resolution"]
    assert (said["policy"], said["kept"], said["archived"]) == ("newest_wins", newer, older)
    assert conflicts.resolve(DEFAULT, dry_run=False) == Resolution()
    assert list(engine.check()) == []


def test_newer_means_later_by_document_date(engine: MemoryEngine):
    stored_first = add(engine, "the office is in Oslo", "facts", document_at=TUESDAY)
    stored_later = add(engine, "the office is in Rome", "facts", document_at=MONDAY)
    flag(engine, stored_later, stored_first)
    assert settled(Conflicts(engine).resolve(DEFAULT, dry_run=False)) == [(stored_first, stored_later, stored_later)]
    assert memory(engine, stored_later).metadata["conflict_resolution"]["kept"] == stored_first


def test_without_dates_the_memory_stored_later_wins(engine: MemoryEngine):
    older, newer = add(engine, "the office is in Rome", "facts"), add(engine, "the office is in Oslo", "facts")
    flag(engine, newer, older)
    assert settled(Conflicts(engine).resolve(DEFAULT, dry_run=True)) == [(newer, older, newer)]


@pytest.mark.parametrize(
    ("older", "newer", "reason"),
    [
        ({}, {"source": "other"}, Review.CROSS_SOURCE),
        ({"document_at": None}, {}, Review.UNDATED),
        ({}, {"document_at": None}, Review.UNDATED),
        ({"document_at": TUESDAY}, {}, Review.UNDATED),
        ({"pinned": True}, {}, Review.PINNED_LOSER),
        ({}, {"origin_class": OriginClass.INFERRED}, Review.LESS_TRUSTED),
        ({"origin_class": OriginClass.TOOL}, {"origin_class": OriginClass.ASSISTANT}, Review.LESS_TRUSTED),
    ],
    ids=lambda value: value.value if isinstance(value, Review) else "",
)
def test_undecidable_conflicts_are_left_for_review(engine: MemoryEngine, older, newer, reason):
    first = add(engine, "the office is in Rome", **{"source": "facts", "document_at": MONDAY, **older})
    second = add(engine, "the office is in Oslo", **{"source": "facts", "document_at": TUESDAY, **newer})
    flag(engine, second, first)
    before = changes(engine)
    found = Conflicts(engine).resolve(DEFAULT, dry_run=False)
    assert found == Resolution(needs_review=(((second, first), reason),))
    assert (changes(engine), flags(engine)) == (before, [(second, first)])


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ({"origin_class": OriginClass.ASSISTANT}, {"origin_class": OriginClass.ASSISTANT}),
        ({"origin_class": OriginClass.INFERRED}, {}),
        ({}, {"pinned": True}),
    ],
    ids=["as trusted", "more trusted", "pinned winner"],
)
def test_a_newer_equally_trusted_memory_wins(engine: MemoryEngine, older, newer):
    first = add(engine, "the office is in Rome", document_at=MONDAY, **older)
    second = add(engine, "the office is in Oslo", document_at=TUESDAY, **newer)
    flag(engine, second, first)
    assert settled(Conflicts(engine).resolve(DEFAULT, dry_run=False)) == [(second, first, second)]


def test_a_chain_of_conflicts_ends_with_the_newest_memory(engine: MemoryEngine):
    rome, oslo, bern = (
        add(engine, f"the office is in {city}", document_at=at)
        for city, at in (("Rome", MONDAY), ("Oslo", TUESDAY), ("Bern", WEDNESDAY))
    )
    for flagger, other in ((bern, oslo), (bern, rome), (oslo, rome)):
        flag(engine, flagger, other)
    found = Conflicts(engine).resolve(DEFAULT, dry_run=False)
    assert settled(found) == [(oslo, rome, oslo), (bern, oslo, bern)]
    assert found.orphaned == ((bern, rome),)
    assert [one.id for one in stored(engine) if not one.archived] == [bern]
    assert flags(engine) == []


def test_conflicts_with_archived_or_deleted_memories_are_removed(engine: MemoryEngine):
    a, b, c, d = (add(engine, f"the office is in {city}", document_at=MONDAY) for city in ("A", "B", "C", "D"))
    flag(engine, b, a)
    flag(engine, d, c)
    engine.archive(DEFAULT, [a])
    engine.delete(DEFAULT, c)
    conflicts = Conflicts(engine)
    assert conflicts.page(DEFAULT, limit=10, offset=0) == ([], 0)
    assert conflicts.resolve(DEFAULT, dry_run=True) == Resolution(orphaned=((b, a),))
    assert flags(engine) == [(b, a)]
    before = changes(engine)
    assert conflicts.resolve(DEFAULT, dry_run=False) == Resolution(orphaned=((b, a),))
    assert (changes(engine), flags(engine)) == (before, [])


def test_conflicts_are_resolved_oldest_first_up_to_a_limit(engine: MemoryEngine):
    for day in range(3):
        older = add(engine, f"the office {day} is in Rome", document_at=MONDAY + timedelta(days=2 * day))
        newer = add(engine, f"the office {day} is in Oslo", document_at=MONDAY + timedelta(days=2 * day + 1))
        flag(engine, newer, older)
    conflicts = Conflicts(engine)
    assert settled(conflicts.resolve(DEFAULT, dry_run=True, limit=2)) == [(2, 1, 2), (4, 3, 4)]
    assert len(conflicts.resolve(DEFAULT, dry_run=False, limit=1).resolved) == 1
    assert len(conflicts.resolve(DEFAULT, dry_run=False).resolved) == 2


def test_a_limited_scope_sees_its_conflicts_and_resolves_none(engine: MemoryEngine):
    inside = [add(engine, f"the office is in {city}", "proj/a") for city in ("Rome", "Oslo")]
    beside = add(engine, "the office is in Bern", "proj/ab")
    flag(engine, inside[1], inside[0])
    flag(engine, inside[1], beside)
    flag(engine, beside, inside[0])
    part = Scope(sources=("proj/a",))
    conflicts = Conflicts(engine)
    found, total = conflicts.page(part, limit=10, offset=0)
    assert ([one.flag for one in found], total) == ([(inside[1], inside[0])], 1)
    with pytest.raises(Forbidden):
        conflicts.resolve(part, dry_run=True)


def test_conflicts_are_limited_to_their_namespace(engine: MemoryEngine):
    older, newer = add(engine, "in Rome", scope=ANN), add(engine, "in Oslo", scope=ANN)
    flag(engine, newer, older, ANN)
    conflicts = Conflicts(engine)
    assert conflicts.page(DEFAULT, limit=10, offset=0) == ([], 0)
    assert conflicts.resolve(DEFAULT, dry_run=False) == Resolution()
    assert conflicts.resolve(Scope("nobody"), dry_run=False) == Resolution()
    assert conflicts.page(ANN, limit=10, offset=0)[1] == 1
