"""The store of LangGraph against the real service, next to LangGraph's own `InMemoryStore`."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest
from langgraph.store.base import (
    BaseStore,
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
)
from langgraph.store.memory import InMemoryStore

from souvenir_client import AsyncSouvenir, Souvenir
from souvenir_client.adapters.langgraph import AsyncSouvenirStore, SouvenirStore
from souvenir_client.errors import InvalidRequest
from tests.client.running import RunningService

ROUNDS = 100
LABELS = ["a", "b", "=c", "a/b", "ä", "A", "50%", "%35", " x", "a b", "*"]
KEYS = ["k", "=k", "a", "../x", ".", "..", "K", "k/=k", "日本", "", "k\n\0"]
VALUES: list[dict[str, Any]] = [
    {},
    {"n": 1},
    {"n": 2.5, "color": "red"},
    {"n": -3, "color": "blue", "tags": ["a", 1, None, {"x": [True]}]},
    {"n": 10**30, "nested": {"deep": {"value": "red", "n": 1}}},
    {"n": 1e300, "color": None, "": "empty name", "metadata": {"archived": True}, "id": 7},
]
FILTERS: list[dict[str, Any] | None] = [
    None,
    {},
    {"color": "red"},
    {"color": {"$ne": "red"}},
    {"color": {"$eq": "blue"}, "n": -3},
    {"nested": {"deep": {"value": "red"}}},
    {"tags": ["a", 1, None, {"x": [True]}]},
    {"color": None},
]
NUMERIC: list[dict[str, Any]] = [{"n": {"$gt": 1}}, {"n": {"$gte": 1, "$lt": 2.5}}, {"n": {"$lte": 2.5, "$ne": 1}}]


class ThreadedStore(BaseStore):
    """The asynchronous store behind synchronous methods, so that every test drives it too."""

    supports_ttl = True

    def __init__(self, url: str, run: Callable[[Coroutine[Any, Any, Any]], Any], **options: Any) -> None:
        self._run = run
        self.souvenir = AsyncSouvenir(url)
        self.store = AsyncSouvenirStore(self.souvenir, **options)
        self.ttl_config = self.store.ttl_config

    def batch(self, ops: Any) -> list[Result]:
        found: list[Result] = self._run(self.store.abatch(ops))
        return found

    async def abatch(self, ops: Any) -> list[Result]:
        raise NotImplementedError

    def sweep_ttl(self) -> int:
        return int(self._run(self.store.asweep_ttl()))


@pytest.fixture(params=["sync", "async"])
def store_of(request: pytest.FixtureRequest, service: RunningService) -> Iterator[Callable[..., Any]]:
    """Makes stores of a fresh agent."""
    agent = f"{request.node.name}-{random.random()}".replace("/", "-")[-100:]
    with asyncio.Runner() as runner, Souvenir(service.url) as souvenir:
        made: list[ThreadedStore] = []

        def make(agent: str = agent, **options: Any) -> BaseStore:
            if request.param == "sync":
                return SouvenirStore(souvenir, agent=agent, **options)
            made.append(ThreadedStore(service.url, runner.run, agent=agent, **options))
            return made[-1]

        yield make
        for store in made:
            runner.run(store.souvenir.aclose())


def plain(result: Any) -> Any:
    """A result without times, and without the order that the stores do not share."""
    if isinstance(result, Item):
        return result.namespace, result.key, result.value, getattr(result, "score", None)
    return sorted(map(plain, result), key=repr) if isinstance(result, list) else result


def test_a_store_answers_like_langgraphs_own(store_of):
    chance, ours, reference = random.Random(7), store_of(), InMemoryStore()
    live: set[tuple[tuple[str, ...], str]] = set()
    for _ in range(ROUNDS):
        namespace = tuple(chance.choice(LABELS) for _ in range(chance.randint(1, 3)))
        known = chance.choice(sorted(live)) if live and chance.random() < 0.6 else (namespace, chance.choice(KEYS))
        value = chance.choice([*VALUES, None])
        batch: list[Op] = [
            PutOp(*known, value),
            GetOp(*known),
            SearchOp(known[0][: chance.randint(0, 3)], filter=chance.choice(FILTERS), limit=1000),
        ]
        chance.shuffle(batch)
        assert plain_batch(ours.batch(batch)) == plain_batch(reference.batch(batch))
        (live.discard if value is None else live.add)(known)
        assert plain(ours.get(*known)) == plain(reference.get(*known))
    assert_same_namespaces(chance, ours, live)


def plain_batch(results: list[Result]) -> list[Any]:
    return [plain(result) for result in results]


def assert_same_namespaces(chance: random.Random, ours: BaseStore, live: set[tuple[tuple[str, ...], str]]) -> None:
    # The reference also lists namespaces that were only read, so it is made again.
    reference = InMemoryStore()
    for namespace, key in live:
        reference.put(namespace, key, {})
    for _ in range(40):
        conditions = tuple(
            MatchCondition(chance.choice(["prefix", "suffix"]), tuple(chance.choices(LABELS, k=chance.randint(1, 2))))
            for _ in range(chance.randint(0, 2))
        )
        op = ListNamespacesOp(
            conditions, chance.choice([None, 1, 2, 5]), limit=chance.choice([3, 100]), offset=chance.choice([0, 2])
        )
        assert ours.batch([op]) == reference.batch([op])


def test_the_numeric_operators_compare_like_langgraphs_own(store_of):
    ours, reference = store_of(), InMemoryStore()
    for number, value in enumerate(VALUES[1:]):
        ours.put(("n",), str(number), value)
        reference.put(("n",), str(number), value)
    for condition in NUMERIC:
        assert plain(ours.search(("n",), filter=condition)) == plain(reference.search(("n",), filter=condition))
    assert plain(ours.search(("n",), filter={"missing": {"$gt": 1}})) == []
    with pytest.raises(ValueError, match=r"Unsupported operator: \$in"):
        ours.search(("n",), filter={"n": {"$in": [1]}})


def test_texts_are_ordered_as_texts(store_of):
    store = store_of()
    store.put(("d",), "old", {"day": "2024-01-31"})
    store.put(("d",), "new", {"day": "2025-06-01"})
    assert [item.key for item in store.search(("d",), filter={"day": {"$gte": "2025-01-01"}})] == ["new"]


def test_a_search_ranks_by_the_query_and_returns_the_others_after_it(store_of):
    store = store_of()
    store.put(("m",), "tea", {"text": "Alice drinks green tea"})
    store.put(("m",), "plain", {"text": "Alice drinks green tea"}, index=False)
    store.put(("m", "deep"), "car", {"text": "The car is in the garage"})
    found = store.search(("m",), query="who drinks tea?")
    assert [item.key for item in found] == ["tea", "car", "plain"]
    assert found[0].score > found[1].score
    assert found[2].score is None
    assert isinstance(found[0], SearchItem)
    pages = [store.search(("m",), query="who drinks tea?", limit=1, offset=n) for n in range(4)]
    assert [item.key for page in pages for item in page] == ["tea", "car", "plain"]
    filtered = store.search(("m",), query="who drinks tea?", filter={"text": {"$ne": "Alice drinks green tea"}})
    assert [item.key for item in filtered] == ["car"]


def test_only_the_named_fields_are_searched_by(store_of):
    store = store_of(fields=["title"])
    store.put(("f",), "one", {"title": "Violins", "body": "bicycles"})
    store.put(("f",), "two", {"title": "Pianos", "parts": [{"name": "bicycles"}]}, index=["parts[*].name"])
    assert store.search(("f",), query="bicycles")[0].key == "two"
    assert store.search(("f",), query="violins")[0].key == "one"


def test_more_items_than_one_request_takes(store_of):
    store = store_of()
    store.batch([PutOp(("many",), f"{n:04}", {"n": n, "text": f"number {n}"}) for n in range(1105)])
    pages = [store.search(("many",), limit=400, offset=offset) for offset in (0, 400, 800)]
    assert [item.value["n"] for page in pages for item in page] == list(range(1105))
    ranked = store.search(("many",), query="number", limit=150)
    assert len({item.key for item in ranked}) == 150
    assert [item.score is None for item in ranked] == [False] * 100 + [True] * 50
    store.batch([PutOp(("many",), f"{n:04}", None) for n in range(30)])
    assert len(store.search(("many",), limit=2000)) == 1075


def test_a_batch_larger_than_one_request_is_stored_whole(store_of):
    store = store_of()
    store.batch([PutOp(("large",), str(n), {"text": f"{n} " * 10_000}) for n in range(30)])
    assert len(store.search(("large",), limit=100)) == 30


def test_a_new_value_replaces_every_field_and_keeps_the_time_of_creation(store_of):
    store = store_of()
    store.put(("r",), "k", {"a": 1, "b": {"c": 2}})
    first = store.get(("r",), "k")
    store.put(("r",), "k", {"b": {"d": 3}})
    second = store.get(("r",), "k")
    assert second.value == {"b": {"d": 3}}
    assert second.created_at == first.created_at
    assert second.updated_at > first.updated_at


def test_expired_items_are_omitted_and_swept(store_of):
    store = store_of(ttl=TTLConfig(omit_expired=True, default_ttl=60))
    store.put(("t",), "gone", {"n": 1}, ttl=-1)
    store.put(("t", "only"), "gone", {"n": 1}, ttl=-1)
    store.put(("t",), "kept", {"n": 2})
    store.put(("t",), "for ever", {"n": 3}, ttl=None)
    assert store.get(("t",), "gone") is None
    assert [item.key for item in store.search(("t",), query="n")] == ["kept", "for ever"]
    assert store.list_namespaces() == [("t",)]
    assert (store.sweep_ttl(), store.sweep_ttl()) == (2, 0)


def test_expired_items_are_returned_until_they_are_swept_by_default(store_of):
    store = store_of(ttl=TTLConfig(refresh_on_read=False))
    store.put(("t",), "late", {"n": 1}, ttl=-1)
    assert store.get(("t",), "late").value == {"n": 1}
    assert store.sweep_ttl() == 1
    assert store.get(("t",), "late") is None


@pytest.mark.parametrize("read", ["get", "search"])
def test_a_read_extends_the_life_of_an_item_unless_it_says_otherwise(store_of, read):
    now = 1_000_000.0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("time.time", lambda: now)
        store = store_of()
        store.put(("t",), "k", {"n": 1}, ttl=1)

        def use(**options: Any) -> None:
            store.get(("t",), "k", **options) if read == "get" else store.search(("t",), **options)

        now += 50
        use()
        now += 50
        assert store.sweep_ttl() == 0
        use(refresh_ttl=False)
        now += 11
        assert store.sweep_ttl() == 1


def test_an_item_is_a_memory_of_its_agent(store_of, service: RunningService):
    store = store_of("shared-agent", path="notes")
    store.put(("users", "alice"), "food", {"likes": "pizza"})
    with Souvenir(service.url, namespace="shared-agent") as souvenir:
        found = souvenir.memories.search(query="pizza").results[0]
        assert (found.text, found.source) == ("likes: pizza", "notes/users/alice/=food")
    assert store_of("shared-agent", path="other").search(()) == []
    assert store_of("another-agent", path="notes").search(()) == []


def test_what_cannot_be_stored_is_refused_with_one_sentence(store_of):
    store = store_of()
    with pytest.raises(InvalidRequest, match="metadata takes at most 65536 bytes"):
        store.put(("x",), "big", {"text": "x" * 70_000})
    with pytest.raises(InvalidRequest, match="must not hold NUL characters"):
        store.put(("x",), "nul", {"text": "\0"})
    with pytest.raises(ValueError, match="take 616 characters as a path, and may take 500; use shorter ones"):
        store.put(("x",), "k" * 603, {})
    with pytest.raises(InvalidNamespaceError):
        store.put((), "k", {})
    assert store.search(()) == []


def test_an_empty_label_is_a_label(store_of):
    store, reference = store_of(), InMemoryStore()
    puts: list[Op] = [PutOp(("u", ""), "k", {"n": 1}), PutOp(("",), "", {"n": 2}), PutOp(("u", "%"), "k", {"n": 3})]
    searches: list[Op] = [SearchOp(one) for one in [("",), ("u", ""), ("u", "%"), ("u",), (), ("", "")]]
    for one in (store, reference):
        one.batch(puts)
    assert plain_batch(store.batch(searches)) == plain_batch(reference.batch(searches))
    assert store.list_namespaces() == reference.list_namespaces()


def test_an_unpaired_surrogate_in_a_key_is_kept(store_of):
    store = store_of()
    store.put(("s",), "\ud800", {"n": 1})
    assert [item.key for item in store.search(("s",))] == ["\ud800"]


def test_a_text_without_visible_characters_is_not_searched_by(store_of):
    store = store_of(fields=["text"])
    store.put(("b",), "blank", {"text": "\u200b\x07"})
    store.put(("b",), "tea", {"text": "green tea"})
    assert [(item.key, item.score is None) for item in store.search(("b",), query="tea")] == [
        ("tea", False),
        ("blank", True),
    ]


def test_a_long_query_is_searched_for_by_its_beginning(store_of):
    store = store_of()
    store.put(("q",), "tea", {"text": "green tea"})
    store.put(("q",), "car", {"text": "a car"})
    assert store.search(("q",), query="green tea " * 2000)[0].key == "tea"


def test_a_read_that_extends_the_life_of_an_item_is_no_change_of_it(store_of):
    store = store_of()
    store.put(("t",), "k", {"n": 1}, ttl=5)
    first = store.get(("t",), "k")
    assert [store.get(("t",), "k").updated_at, store.search(("t",))[0].updated_at] == [first.updated_at] * 2
    store.put(("t",), "k", {"n": 2}, ttl=5)
    assert store.get(("t",), "k").updated_at > first.updated_at


def test_a_value_without_an_end_outlives_a_late_refresh_of_the_one_before(store_of, service: RunningService):
    store = store_of("late-refresh", ttl=TTLConfig(omit_expired=True))
    store.put(("t",), "k", {"n": 1}, ttl=5)
    store.put(("t",), "k", {"n": 2})
    with Souvenir(service.url, namespace="late-refresh") as souvenir:
        [memory] = souvenir.memories.list(source="langgraph/t").memories
        souvenir.memories.update(memory.id, metadata_patch={"expires_at": 1.0})
    assert (store.get(("t",), "k").value, store.sweep_ttl()) == ({"n": 2}, 0)


def test_a_long_value_is_stored_whole_and_searched_by_its_beginning(store_of):
    store = store_of()
    value = {"text": "word " * 12_000}
    store.put(("long",), "k", value)
    assert store.get(("long",), "k").value == value
    assert json.dumps(store.search(("long",), query="word")[0].value) == json.dumps(value)


def test_the_synchronous_store_has_asynchronous_methods_too(service: RunningService):
    async def use() -> Item | None:
        with Souvenir(service.url) as souvenir:
            store = SouvenirStore(souvenir, agent="threads")
            await store.aput(("a",), "k", {"n": 1})
            return await store.aget(("a",), "k")

    found = asyncio.run(use())
    assert found is not None
    assert found.value == {"n": 1}


def test_the_asynchronous_store_refuses_synchronous_calls():
    store = AsyncSouvenirStore(AsyncSouvenir(), agent="a")
    with pytest.raises(NotImplementedError, match="asynchronous methods only"):
        store.get(("a",), "k")
