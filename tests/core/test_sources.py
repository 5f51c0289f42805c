"""One visibility rule for a list of paths: in Python, in SQL and over the arrays of an index."""

from __future__ import annotations

import apsw
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from souvenir.core.labels import is_visible
from souvenir.core.passages import PassageRow
from souvenir.core.types import Filters
from souvenir.index.attributes import PassageAttributes
from souvenir.store.namespaces import visible_condition

SEGMENTS = st.sampled_from(["a", "ab", "b", "..", ".", "", "é", "%", "_", "A"])
PATHS = st.lists(SEGMENTS, min_size=1, max_size=4).map("/".join)


@pytest.mark.parametrize(
    ("source", "paths", "visible"),
    [
        ("proj/a", ("proj/a",), True),
        ("proj/a/notes", ("proj/a",), True),
        ("proj/ab", ("proj/a",), False),
        ("proj", ("proj/a",), False),
        ("PROJ/a", ("proj/a",), False),
        ("proj/a/../b", ("proj/a",), False),
        ("proj/a/..b", ("proj/a",), True),
        ("proj/a/..", ("proj/a",), False),
        ("../proj", ("../proj",), False),
        ("other", ("proj/a", "other"), True),
        ("proj/a", (), False),
        ("proj/a/../b", None, True),
    ],
)
def test_a_path_makes_itself_and_everything_below_it_visible(source, paths, visible):
    assert is_visible(source, paths) is visible


@given(sources=st.lists(PATHS, min_size=1, max_size=8), paths=st.none() | st.lists(PATHS, max_size=3).map(tuple))
@example(sources=["a/b", "a", "ab", "a/../b"], paths=("a",))
def test_sql_and_the_index_agree_with_the_visibility_rule(sources: list[str], paths: tuple[str, ...] | None):
    expected = [is_visible(source, paths) for source in sources]
    assert [shown_by_sql(source, paths) for source in sources] == expected
    attributes = PassageAttributes(str.split)
    for number, source in enumerate(sources):
        attributes.append(PassageRow(number, number, 0, source, 0, False))
    allowed = attributes.allowed(Filters(visible=paths), None)
    assert (expected if allowed is None else allowed.tolist()) == expected


def shown_by_sql(source: str, paths: tuple[str, ...] | None) -> bool:
    condition, parameters = visible_condition(paths)
    query = f"WITH one AS (SELECT ? AS source) SELECT count(*) FROM one WHERE {condition}"
    return bool(apsw.Connection(":memory:").execute(query, (source, *parameters)).get)
