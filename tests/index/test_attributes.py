"""Filter attributes of passages, compared with a plain list of passages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from souvenir.core.passages import OwnerChanged, Passage
from souvenir.core.types import Filters, PassageKind, Profile, SourceFilter, SourceMatch
from souvenir.index.attributes import PassageAttributes, row_of, source_matches

START = datetime(2023, 5, 8, tzinfo=UTC)

sources = st.sampled_from(["a", "a/b", "ab", "a/b/c", "b", ""])
moments = st.integers(0, 6).map(lambda days: START + timedelta(days=days))
source_filters = st.builds(
    SourceFilter, st.sampled_from(["a", "a/b", "b", "", "/"]), st.sampled_from(list(SourceMatch))
)
filters = st.builds(
    Filters,
    sources=st.lists(source_filters, max_size=2).map(tuple),
    since=st.none() | moments,
    until=st.none() | moments,
    include_archived=st.booleans(),
)
added = st.tuples(st.integers(1, 8), sources, moments, st.booleans(), st.sampled_from(list(Profile)))
removed = st.floats(0, 1, exclude_max=True)
changed = st.builds(
    OwnerChanged, st.just(PassageKind.MEMORY), st.integers(1, 8), sources, moments, st.booleans(), st.booleans()
)


def append(attributes: PassageAttributes, passage: Passage) -> None:
    attributes.append(row_of(passage))


@pytest.mark.parametrize(
    ("match", "pattern", "expected"),
    [
        (SourceMatch.PREFIX, "a/b", {"a/b", "a/bc", "a/b/c"}),
        (SourceMatch.PATH, "a/b", {"a/b", "a/b/c"}),
        (SourceMatch.SUBSTRING, "b", {"a/b", "a/bc", "a/b/c", "b"}),
        (SourceMatch.PREFIX, "", {"a", "a/b", "a/bc", "a/b/c", "b"}),
        (SourceMatch.PREFIX, "A", set()),
        (SourceMatch.PATH, "a/", set()),
    ],
)
def test_a_source_is_selected_by_prefix_by_path_or_by_part(match: SourceMatch, pattern: str, expected: set[str]):
    names = ["a", "a/b", "a/bc", "a/b/c", "b"]
    assert {name for name in names if source_matches(name, SourceFilter(pattern, match))} == expected


def assert_neighbours_are_those_said_together(attributes: PassageAttributes, passages: Mapping[int, Passage]) -> None:
    """Neighbours are memories of one source and one given time, in id order."""
    before, after = (array.tolist() for array in attributes.neighbours())
    row_of = {id_: row for row, id_ in enumerate(attributes.ids.tolist())}
    expected_before, expected_after = [-1] * (len(passages) + 1), [-1] * (len(passages) + 1)
    in_order = sorted(passages.values(), key=lambda one: (one.source, one.occurred_at, one.owner_id, one.id))
    for first, second in pairwise([one for one in in_order if one.dated]):
        if (first.source, first.occurred_at) == (second.source, second.occurred_at):
            expected_after[row_of[first.id]] = row_of[second.id]
            expected_before[row_of[second.id]] = row_of[first.id]
    assert (before, after) == (expected_before, expected_after)


@given(steps=st.lists(added | removed | changed, max_size=60), wanted=filters)
def test_filters_equal_those_of_a_plain_list_after_any_changes(
    steps: list[tuple[int, str, datetime, bool, Profile] | float | OwnerChanged], wanted: Filters
):
    attributes, passages = PassageAttributes(str.split), dict[int, Passage]()
    for number, step in enumerate(steps):
        match step:
            case OwnerChanged():
                attributes.change_owner(step)
                for id_, passage in passages.items():
                    if passage.owner_id == step.owner_id:
                        passages[id_] = replace(
                            passage,
                            source=step.source,
                            occurred_at=step.occurred_at,
                            archived=step.archived,
                            dated=step.dated,
                        )
            case float():
                if passages:
                    row = int(step * len(passages))
                    del passages[int(attributes.ids[row])]
                    attributes.remove(row)
            case (owner, source, occurred_at, archived, profile):
                passage = Passage(number, PassageKind.MEMORY, owner, 0, "", profile, source, occurred_at, archived)
                passages[number] = passage
                append(attributes, passage)
    assert len(attributes) == len(passages)
    assert sorted(attributes.ids.tolist()) == sorted(passages)
    for row, id_ in enumerate(attributes.ids.tolist()):
        assert attributes.row_of(id_) == row
        assert attributes.agrees(row, passages[id_])
    assert_neighbours_are_those_said_together(attributes, passages)
    allowed = attributes.allowed(wanted, None)
    found = attributes.ids if allowed is None else attributes.ids[allowed]
    assert set(found.tolist()) == {
        id_
        for id_, passage in passages.items()
        if (wanted.include_archived or not passage.archived)
        and (not wanted.sources or any(source_matches(passage.source, one) for one in wanted.sources))
        and (wanted.since is None or passage.occurred_at >= wanted.since)
        and (wanted.until is None or passage.occurred_at <= wanted.until)
    }


def test_only_owners_selected_by_other_filters_are_allowed():
    attributes = PassageAttributes(str.split)
    for number in range(200):
        append(attributes, passage_of(number, owner=number // 2))
    allowed = attributes.allowed(Filters(), np.array([3, 40, 777]))
    assert allowed is not None
    assert attributes.ids[allowed].tolist() == [6, 7, 80, 81]
    nothing = attributes.allowed(Filters(), np.array([], dtype=np.int64))
    assert nothing is not None
    assert not nothing.any()


def passage_of(number: int, owner: int) -> Passage:
    return Passage(number, PassageKind.MEMORY, owner, 0, "", Profile.FACT, "a", START, False)


def test_a_reused_row_does_not_inherit_the_archived_flag():
    attributes = PassageAttributes(str.split)
    append(attributes, replace(passage_of(1, owner=1), archived=True))
    attributes.remove(0)
    append(attributes, passage_of(2, owner=2))
    append(attributes, replace(passage_of(3, owner=3), archived=True))
    allowed = attributes.allowed(Filters(), None)
    assert allowed is not None
    assert allowed.tolist() == [True, False]


def test_removals_keep_all_other_rows():
    passages = [
        replace(passage_of(number, owner=number // 3), source=f"s{number % 4}", archived=number % 5 == 0)
        for number in range(300)
    ]
    attributes = PassageAttributes(str.split)
    for passage in passages:
        append(attributes, passage)
    assert len(attributes) == 300
    for passage in passages:
        row = attributes.row_of(passage.id)
        assert row is not None
        assert attributes.agrees(row, passage)
    for row in (299, 5, 0, 100):
        attributes.remove(row)
    left = [passage for passage in passages if attributes.row_of(passage.id) is not None]
    assert len(left) == len(attributes) == 296
    allowed = attributes.allowed(Filters(sources=(SourceFilter("s1"),)), None)
    assert allowed is not None
    expected = {passage.id for passage in left if passage.source == "s1" and not passage.archived}
    assert set(attributes.ids[allowed].tolist()) == expected


def test_without_filters_every_row_is_allowed_without_a_mask():
    attributes = PassageAttributes(str.split)
    assert attributes.allowed(Filters(), None) is None
    append(attributes, passage_of(1, owner=1))
    assert attributes.allowed(Filters(), None) is None
    attributes.change_owner(OwnerChanged(PassageKind.MEMORY, 1, "a", START, True, False))
    assert attributes.allowed(Filters(include_archived=True), None) is None
    assert attributes.allowed(Filters(), None) is not None


@pytest.mark.parametrize(
    "changed",
    [
        {"owner_id": 2},
        {"profile": Profile.DOC},
        {"source": "b"},
        {"occurred_at": START + timedelta(microseconds=1)},
        {"archived": True},
        {"id": 8},
    ],
)
def test_a_row_with_any_differing_attribute_does_not_agree(changed: dict[str, object]):
    attributes, passage = PassageAttributes(str.split), passage_of(7, owner=1)
    append(attributes, passage)
    assert attributes.agrees(0, passage)
    assert not attributes.agrees(0, replace(passage, **changed))  # type: ignore[arg-type]  # one field, by its name
