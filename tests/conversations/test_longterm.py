"""Tier 3: values stored under keys are returned unchanged, by key and by search, for their agent only."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from souvenir.conversations.agents import Agents
from souvenir.conversations.async_long_term import LongTermMemory
from souvenir.conversations.long_term import LongTermStore
from souvenir.core.errors import InvalidRequest, MemoryPinned
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryPatch, Scope
from souvenir.memories.engine import MemoryEngine
from tests.conversations.running import run
from tests.fake_embedder import FakeEmbedder


@pytest.fixture
def memory(engine: MemoryEngine) -> LongTermMemory:
    return LongTermMemory.over(engine)


def test_a_stored_value_is_recalled_with_its_key(memory: LongTermMemory):
    run(memory.remember("favorite color", "blue"))
    run(memory.remember("home town", "Lisbon", "location"))
    assert run(memory.recall("which color")) == ["favorite color: blue", "home town: Lisbon"]
    assert run(memory.recall("town", limit=1)) == ["home town: Lisbon"]


def test_recall_returns_the_best_match_first_with_its_score(memory: LongTermMemory):
    for key, value in (("car", "an old red van"), ("bike", "a red racing bike"), ("tea", "green without sugar")):
        run(memory.remember(key, value, "fact"))
    found = run(memory.search_memories("red racing bike"))
    assert [one["key"] for one in found[:2]] == ["bike", "car"]
    assert found[0]["score"] > found[1]["score"]
    assert 1.0 >= found[0]["similarity"] > found[1]["similarity"] > 0


def test_a_second_value_replaces_the_first_in_its_category_only(memory: LongTermMemory):
    run(memory.remember("city", "Oslo", "location"))
    run(memory.remember("city", "a song", "fact"))
    run(memory.remember("city", "Bergen", "location"))
    found = {one["category"]: one["value"] for one in run(memory.search_memories("city"))}
    assert found == {"location": "Bergen", "fact": "a song"}


def test_a_search_of_a_category_finds_that_category_only(memory: LongTermMemory):
    run(memory.remember("morning", "coffee at seven", "routine"))
    run(memory.remember("coffee", "black", "preference"))
    run(memory.remember("cafe", "coffee at the corner", "location"))
    [found] = run(memory.search_memories("coffee", category="routine"))
    assert (found["key"], found["value"], found["category"]) == ("morning", "coffee at seven", "routine")
    assert found["memory"] == "morning: coffee at seven"
    assert len(run(memory.search_memories("coffee"))) == 3


@pytest.mark.parametrize("value", ["https://a.example/: b: c", ": ", "", " two\nlines: here ", "key: again: key"])
def test_any_value_round_trips(memory: LongTermMemory, value: str):
    run(memory.set_preference("site: main", value))
    assert run(memory.get_preference("site: main")) == value
    assert run(memory.get_user_preferences()) == {"site: main": value}
    [found] = run(memory.search_memories("site"))
    assert (found["key"], found["value"]) == ("site: main", value)


def test_a_preference_is_set_changed_read_and_forgotten(memory: LongTermMemory):
    assert run(memory.get_user_preferences()) == {}
    assert run(memory.get_preference("tone")) is None
    assert run(memory.get_preference("tone", "plain")) == "plain"
    run(memory.set_preference("tone", "formal"))
    run(memory.set_preference("length", "short"))
    run(memory.set_preference("tone", "friendly"))
    assert run(memory.get_preference("tone", "plain")) == "friendly"
    assert run(memory.get_user_preferences()) == {"length": "short", "tone": "friendly"}
    assert run(memory.forget_preference("tone")) is True
    assert run(memory.forget_preference("tone")) is False
    assert run(memory.get_user_preferences()) == {"length": "short"}
    assert [one["key"] for one in run(memory.search_memories("tone friendly"))] == ["length"]


def test_preferences_are_memories_of_their_category_and_no_others_are(memory: LongTermMemory):
    run(memory.remember("tone", "formal"))
    run(memory.remember("length", "short", "preference"))
    assert run(memory.get_user_preferences()) == {"length": "short"}


def test_forgetting_a_key_deletes_its_previous_values(engine: MemoryEngine, memory: LongTermMemory):
    run(memory.remember("address", "Harbour Lane", "contact"))
    scope = Scope("assistant")
    [old] = engine.page(scope, offset=0, limit=9).memories
    engine.supersede(scope, old.id, text="address: Mill Road")
    assert run(memory.forget("address", "general")) is False
    assert run(memory.forget("address", "contact")) is True
    assert engine.count(scope) == 0
    assert list(engine.check()) == []


def test_a_pinned_memory_is_not_forgotten(engine: MemoryEngine, memory: LongTermMemory):
    run(memory.remember("blood type", "AB", "fact"))
    [stored] = engine.page(Scope("assistant"), offset=0, limit=9).memories
    engine.update(Scope("assistant"), stored.id, MemoryPatch(pinned=True))
    with pytest.raises(MemoryPinned, match="unpin it"):
        run(memory.forget("blood type", "fact"))
    assert run(memory.recall("blood")) == ["blood type: AB"]


def test_an_unknown_category_is_refused_with_the_known_ones(memory: LongTermMemory):
    for work in (
        memory.remember("k", "v", "gossip"),
        memory.search_memories("k", "gossip"),
        memory.forget("k", "gossip"),
    ):
        with pytest.raises(InvalidRequest, match=r"gossip.*general, preference, fact, contact, location, routine"):
            run(work)


def test_categories_are_those_of_the_privacy_rules(tmp_path: Path):
    rules = tmp_path / "privacy.yaml"
    rules.write_text("categories: [recipe]", encoding="utf-8")
    with closing(MemoryEngine.open(Settings(data_dir=tmp_path, privacy_config=rules), FakeEmbedder())) as engine:
        memories = LongTermStore(engine)
        memories.remember(Scope("cook"), "soup", "leeks", "recipe")
        assert memories.categories == ("general", "preference", "recipe")
        with pytest.raises(InvalidRequest, match="Unknown category 'fact'"):
            memories.remember(Scope("cook"), "soup", "leeks", "fact")


def test_secrets_are_redacted_in_values_and_refused_in_keys(memory: LongTermMemory):
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    run(memory.set_preference("deploy token", f"it is {token}: keep it"))
    value = run(memory.get_preference("deploy token"))
    assert value is not None
    assert token not in value
    assert (value.startswith("it is ["), value.endswith("]: keep it")) == (True, True)
    with pytest.raises(InvalidRequest, match="choose a key that only names the value"):
        run(memory.remember(token, "my token"))


@pytest.mark.parametrize("key", ["", "k" * 501])
def test_an_invalid_key_is_refused(memory: LongTermMemory, key: str):
    with pytest.raises(InvalidRequest, match="1 to 500 characters"):
        run(memory.remember(key, "value"))


def test_memories_of_agents_are_isolated(engine: MemoryEngine):
    ana, ben = LongTermMemory.over(engine, agent="ana"), LongTermMemory.over(engine, agent="ben")
    run(ana.set_preference("tone", "formal"))
    run(ben.set_preference("tone", "rude"))
    run(ana.remember("pet", "a tortoise"))
    assert run(ben.recall("pet tortoise")) == ["tone: rude"]
    assert run(ana.get_user_preferences()) == {"tone": "formal"}
    assert run(ben.forget("pet")) is False
    assert {Agents(engine).get(Scope(name)).name for name in ("ana", "ben")} == {"ana", "ben"}


def test_reading_and_forgetting_create_no_agent(engine: MemoryEngine):
    nobody = LongTermMemory.over(engine, agent="nobody")
    assert (run(nobody.recall("x")), run(nobody.get_user_preferences()), run(nobody.forget("x"))) == ([], {}, False)
    with engine.namespace(Scope("nobody")) as (_, namespace):
        assert namespace is None


def test_use_before_initialize_is_refused(tmp_path: Path):
    memory = LongTermMemory(tmp_path / "data")
    with pytest.raises(InvalidRequest, match=r"initialize\(\) first"):
        run(memory.recall("x"))
    assert not (tmp_path / "data").exists()


def test_a_data_folder_keeps_memories_with_the_real_model(tmp_path: Path):
    async def remember() -> None:
        memory = LongTermMemory(tmp_path / "data", llm_model="qwen3:8b")
        await memory.initialize()
        await memory.initialize()
        for key, value in (("diet", "eats no meat"), ("desk", "by the window"), ("car", "a blue estate")):
            await memory.remember(key, value, "fact")
        await memory.set_preference("tone", "formal")
        await memory.close()

    async def recall() -> tuple[list[str], dict[str, str]]:
        memory = LongTermMemory(tmp_path / "data")
        await memory.initialize()
        try:
            return await memory.recall("is she a vegetarian?", limit=1), await memory.get_user_preferences()
        finally:
            await memory.close()

    run(remember())
    assert run(recall()) == (["diet: eats no meat"], {"tone": "formal"})
