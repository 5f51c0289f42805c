"""The ledger of the fault battery reports each kind of fault, and nothing else."""

from __future__ import annotations

from benchmarks.faults.ledger import Change, Item, Ledger, Repeat, Stored, compare, repeated

FIRST, SECOND = Item("memory", "first"), Item("memory", "second")


def stored(**contents: int) -> Stored:
    holding = Stored()
    for content, id_ in contents.items():
        holding.add("memory", content, id_)
    return holding


def acknowledged(*items: Item) -> Ledger:
    ledger = Ledger()
    change = Change(added=items)
    ledger.begin(change)
    ledger.acknowledge(change, range(1, len(items) + 1))
    return ledger


def test_acknowledged_items_that_are_there_once_are_no_fault():
    assert compare([acknowledged(FIRST, SECOND)], stored(first=1, second=2)).faults == ()


def test_a_missing_acknowledged_item_is_lost():
    outcome = compare([acknowledged(FIRST, SECOND)], stored(first=1))
    assert len(outcome.lost) == 1
    assert "second" in outcome.lost[0]


def test_an_item_that_is_stored_twice_is_doubled():
    holding = stored(first=1)
    holding.add("memory", "first", 2)
    assert len(compare([acknowledged(FIRST)], holding).doubled) == 1


def test_an_id_that_was_given_twice_is_doubled():
    outcome = compare([acknowledged(FIRST), acknowledged(SECOND)], stored(first=1, second=1))
    assert len(outcome.doubled) == 1


def test_a_removed_item_that_is_there_is_back():
    ledger = acknowledged(FIRST)
    change = Change(removed=(FIRST,))
    ledger.begin(change)
    ledger.acknowledge(change)
    assert compare([ledger], stored()).faults == ()
    assert len(compare([ledger], stored(first=1)).risen) == 1


def test_an_item_that_nobody_asked_for_is_reported():
    assert len(compare([Ledger()], stored(first=1)).risen) == 1


def test_a_batch_in_flight_is_there_wholly_or_not_at_all():
    def cut_off() -> Ledger:
        ledger = Ledger()
        ledger.begin(Change(added=(FIRST, SECOND)))
        return ledger

    assert compare([cut_off()], stored()).faults == ()
    assert compare([cut_off()], stored(first=1, second=2)).faults == ()
    assert len(compare([cut_off()], stored(first=1)).doubled) == 1


def test_a_replacement_in_flight_leaves_the_old_or_the_new_item():
    def cut_off() -> Ledger:
        ledger = acknowledged(FIRST)
        ledger.begin(Change((FIRST,), (SECOND,)))
        return ledger

    assert compare([cut_off()], stored(first=1)).faults == ()
    assert compare([cut_off()], stored(second=1)).faults == ()
    assert len(compare([cut_off()], stored()).doubled) == 1
    assert len(compare([cut_off()], stored(first=1, second=2)).doubled) == 1


def test_a_settled_change_must_hold_from_then_on():
    ledger = Ledger()
    ledger.begin(Change(added=(FIRST,)))
    compare([ledger], stored(first=1))
    assert len(compare([ledger], stored()).lost) == 1


def test_the_items_of_a_job_may_be_missing_until_it_has_ended():
    ledger = Ledger()
    change = Change(added=(FIRST, SECOND), atomic=False)
    ledger.begin(change)
    ledger.accept(change, "job")
    assert compare([ledger], stored(first=1)).faults == ()
    ledger.finish("job")
    assert len(compare([ledger], stored(first=1)).lost) == 1


def test_a_repeated_request_that_makes_its_item_again_is_doubled():
    ledger = Ledger()
    change = Change(added=(FIRST,), repeat=Repeat("/memory/add", {}, "key"))
    ledger.begin(change)
    compare([ledger], stored(first=1))
    assert repeated(ledger, change, [1]) == []
    assert len(repeated(ledger, change, [2])) == 1
