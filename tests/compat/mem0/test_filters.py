"""The condition that a filter becomes selects exactly what the filter means."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime

import apsw
import pytest
from hypothesis import given, settings

from souvenir.compat.mem0.agents import Part
from souvenir.compat.mem0.filters import MAX_DEPTH, MAX_TESTS, FilterReader
from souvenir.compat.mem0.stored import shown_metadata, source_of, stored_metadata, user_of
from souvenir.core.errors import InvalidFilter
from souvenir.core.settings import Settings
from souvenir.core.types import Listing, Memory, MemoryDraft, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.memories.conditions import sql_of
from tests.compat.mem0.filters import NAMES, NUMBERS, WORDS, filters, fits
from tests.fake_embedder import FakeEmbedder
from tests.thoroughness import sampled

SCOPE = Scope("mine")
TEXTS = ("green tea", "Tea at noon", "a dog", "nothing")


def drafts() -> Iterator[MemoryDraft]:
    """Memories of which every test of a random filter selects some and leaves some out."""
    chance = random.Random(7)
    held = [*WORDS, *NUMBERS, True, False, None, ["red", 1], [], {"x": "red", "y": 2}, {"x": ["blue", True]}]
    for number in range(60):
        metadata = stored_metadata({name: chance.choice(held) for name in NAMES if chance.random() < 0.6})
        entities = {"user_id": chance.choice(["alice", "bob"]), "run_id": "carol"}
        metadata |= {name: value for name, value in entities.items() if chance.random() < 0.5}
        yield MemoryDraft(
            text=f"{chance.choice(TEXTS)} {number}",
            source=chance.choice(["mem0", source_of("alice"), source_of("carol")]),
            metadata=metadata,
            document_at=chance.choice([None, datetime(2024, 1, 1, tzinfo=UTC), datetime(2023, 5, 1, tzinfo=UTC)]),
            tags=chance.choice([(), ("Food",), ("food", "Pets")]),
        )


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[MemoryEngine, list[Memory]]]:
    settings = Settings(data_dir=tmp_path_factory.mktemp("filters"))
    engine = MemoryEngine.open(settings, FakeEmbedder())
    try:
        engine.add_batch(SCOPE, list(drafts()))
        yield engine, list(engine.page(SCOPE, Listing(), offset=0, limit=100).memories)
    finally:
        engine.close()


@given(wanted=filters)
@settings(max_examples=sampled(150, 2000))
def test_a_filter_selects_what_its_slow_reading_selects(stored, wanted):
    engine, memories = stored
    expected = [
        one.id for one in memories if fits(wanted, one, shown_metadata(one.metadata), user_of(one), SCOPE.namespace)
    ]
    assert Part(SCOPE, FilterReader(SCOPE.namespace).read(wanted)).ids(engine) == expected


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ({"color": "red"}, "unknown; use one of"),
        ({"user_id": {"like": "a"}}, "no operator 'like'"),
        ({"user_id": {"gt": "a"}}, "'gt' is not for this field"),
        ({"user_id": {}}, "no operator {}"),
        ({"user_id": 7}, "takes a text"),
        ({"agent_id": {"contains": "a"}}, "not for agent_id"),
        ({"created_at": {"gte": "soon"}}, "ISO-8601"),
        ({"created_at": {"gte": ["2024-01-01", "2024-01-02"]}}, "takes one time"),
        ({"metadata": "red"}, "takes an object of names"),
        ({"metadata": {'a"b': 1}}, "takes no quote"),
        ({"metadata": {"a": {"gt": True}}}, "a number or a text"),
        ({"metadata": {"a": {"in": [{"b": 1}]}}}, "takes a text, a finite number"),
        ({"AND": ["user_id"]}, "takes an object"),
        ({"OR": [{"user_id": "a"}] * (MAX_TESTS + 1)}, f"at most {MAX_TESTS} tests"),
        (["user_id"], "takes an object"),
        ({"metadata." + ".".join("a" * 70): 1}, "nest it less"),
        ({"metadata": {"keywords": {"in": [1]}, "a" * 2000: {"x": {"gt": 1, "like": 2}}}}, "no operator 'like'"),
        ({"keywords": {"in": ["a"] * (MAX_TESTS + 1)}}, f"at most {MAX_TESTS} tests"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_no_filter_is_refused_with_what_to_do(wanted, says):
    with pytest.raises(InvalidFilter, match=says.replace("{", r"\{").replace("}", r"\}")):
        FilterReader("mine").read(wanted)


def test_a_filter_is_nested_only_so_deep():
    nested: dict[str, object] = {"user_id": "a"}
    for _ in range(MAX_DEPTH + 1):
        nested = {"NOT": [nested]}
    with pytest.raises(InvalidFilter, match="nest it less"):
        FilterReader("mine").read(nested)


def test_names_in_metadata_are_nested_only_so_deep(stored):
    engine, _ = stored
    nested: dict[str, object] = {"x": 1}
    for _ in range(MAX_DEPTH - 1):
        nested = {"x": nested}
    assert Part(SCOPE, FilterReader("mine").read({"OR": [{"metadata": nested}] * MAX_TESTS})).ids(engine) == []
    with pytest.raises(InvalidFilter, match="nest it less"):
        FilterReader("mine").read({"metadata": {"x": nested}})


def test_a_list_of_as_many_keywords_as_tests_selects_memories_with_any(stored):
    engine, memories = stored
    words = [f"absent {number}" for number in range(MAX_TESTS - 1)]
    found = Part(SCOPE, FilterReader("mine").read({"keywords": {"in": [*words, "dog"]}})).ids(engine)
    assert found == [one.id for one in memories if "dog" in one.text]


@pytest.mark.parametrize("values", [["red", "blue", True], [1, 2.5], ["red", 1]], ids=str)
def test_a_list_of_values_is_read_once_for_all_memories(values):
    """SQLite calls a subquery correlated if it runs again for each row."""
    condition, parameters = sql_of(FilterReader("mine").read({"metadata": {"a": {"nin": values}}}), 1)
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE memories (metadata TEXT)")
    plan = connection.execute(f"EXPLAIN QUERY PLAN SELECT 1 FROM memories WHERE {condition}", parameters).fetchall()
    steps = [str(step[3]) for step in plan]
    kinds = [step.split(" SUBQUERY")[0] for step in steps if "SUBQUERY" in step]
    assert kinds == ["CORRELATED SCALAR", "LIST", "LIST"]
