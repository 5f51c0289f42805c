"""The three tiers behind one interface, which all survive a restart."""

from __future__ import annotations

import asyncio
import random
import time
from contextlib import closing
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from souvenir.conversations import MemoryConfig, MemoryManager
from souvenir.conversations.messages import Conversations
from souvenir.conversations.sessions import Sessions
from souvenir.core.errors import EmbeddingUnavailable, InvalidRequest, StoreUnusable
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryPatch, Scope
from souvenir.memories.engine import MemoryEngine
from tests.conversations.running import run
from tests.conversations.talk import BrokenEmbedder, say
from tests.fake_embedder import FakeEmbedder
from tests.killing import lines_until_killed

AGENT = Scope("assistant")
ROUNDS = 3


@pytest.fixture
def manager(engine: MemoryEngine) -> MemoryManager:
    return opened(engine)


def opened(engine: MemoryEngine, agent: str = "assistant", **fields: Any) -> MemoryManager:
    manager = MemoryManager.over(engine, agent=agent, **fields)
    run(manager.initialize())
    return manager


def talk(manager: MemoryManager, *contents: str) -> None:
    for number, content in enumerate(contents):
        run(manager.add_to_session("assistant" if number % 2 else "user", content))


def contents(messages: list[dict[str, Any]]) -> list[str]:
    return [message["content"] for message in messages]


def test_a_new_manager_knows_nothing(manager: MemoryManager):
    assert run(manager.get_session_context()) == []
    assert run(manager.search_history("x")) == []
    assert run(manager.recall("x")) == []
    assert run(manager.get_user_preferences()) == {}
    assert run(manager.get_conversation_history("nobody")) is None
    assert run(manager.build_context_for_llm("x")) == {
        "session_messages": [],
        "relevant_history": [],
        "relevant_memories": [],
        "user_preferences": {},
    }
    run(manager.clear_session())
    run(manager.end_conversation())


def test_messages_are_in_the_context_oldest_first(manager: MemoryManager):
    before = time.time()
    talk(manager, "What is for dinner?", "Soup.")
    first, second = run(manager.get_session_context())
    assert first.keys() == {"role", "content", "timestamp"}
    assert (first["role"], first["content"]) == ("user", "What is for dinner?")
    assert (second["role"], second["content"]) == ("assistant", "Soup.")
    assert before - 0.001 <= first["timestamp"] <= second["timestamp"] <= time.time()
    with pytest.raises(InvalidRequest, match="user, assistant, system"):
        run(manager.add_to_session("robot", "hello"))


def test_the_context_holds_as_many_messages_as_the_config_says(engine: MemoryEngine):
    manager = opened(engine, session_max_messages=3)
    talk(manager, *"abcde")
    assert contents(run(manager.get_session_context())) == list("cde")


def test_the_first_message_starts_a_conversation(manager: MemoryManager, engine: MemoryEngine):
    talk(manager, "hello")
    [conversation] = run(manager.history.list_conversations())
    assert (conversation["message_count"], conversation["ended_at"]) == (1, None)
    assert conversation["metadata"] == {"started_by": "MemoryManager"}


def test_starting_a_conversation_ends_the_previous_one(manager: MemoryManager):
    first = run(manager.start_conversation())
    talk(manager, "the first topic")
    second = run(manager.start_conversation())
    assert first != second
    assert run(manager.get_session_context()) == []
    talk(manager, "the second topic")
    kept = run(manager.get_conversation_history(first))
    assert kept is not None
    assert contents(kept["messages"]) == ["the first topic"]
    assert kept["ended_at"] is not None
    assert contents(run(manager.search_history("topic"))) == ["the first topic"]


def test_an_ended_conversation_is_history_and_the_context_is_empty(manager: MemoryManager):
    conversation_id = run(manager.start_conversation())
    talk(manager, "my sister lives in Oslo", "noted")
    assert run(manager.search_history("sister Oslo")) == []
    run(manager.end_conversation())
    assert run(manager.get_session_context()) == []
    [found, _] = run(manager.search_history("sister Oslo"))
    assert (found["content"], found["conversation_id"]) == ("my sister lives in Oslo", conversation_id)
    assert found["similarity"] > 0
    assert contents(run(manager.search_history("sister Oslo", limit=1))) == ["my sister lives in Oslo"]
    run(manager.end_conversation())


def test_the_active_conversation_is_excluded_from_history_even_if_indexed(manager: MemoryManager, engine: MemoryEngine):
    talk(manager, "an old red door")
    run(manager.end_conversation())
    conversation_id = run(manager.start_conversation())
    talk(manager, "a new red door")
    say(Conversations(engine), "another red door", AGENT, session_id=conversation_id)
    assert Conversations(engine).index_pending(AGENT) == 1
    assert contents(run(manager.search_history("red door"))) == ["an old red door"]
    context = run(manager.build_context_for_llm("red door"))
    assert contents(context["relevant_history"]) == ["an old red door"]
    assert contents(context["session_messages"]) == ["a new red door", "another red door"]


def test_a_cleared_session_has_no_context_and_stays_in_history(manager: MemoryManager):
    talk(manager, "forget the blue door")
    run(manager.clear_session())
    assert run(manager.get_session_context()) == []
    talk(manager, "the red door")
    assert contents(run(manager.get_session_context())) == ["the red door"]
    run(manager.end_conversation())
    assert contents(run(manager.search_history("blue door", limit=1))) == ["forget the blue door"]
    assert len(run(manager.history.list_conversations())) == 1


def test_values_are_recalled_and_preferences_returned(manager: MemoryManager):
    run(manager.remember("favorite color", "blue: like the sea"))
    run(manager.set_preference("tone", "formal"))
    assert run(manager.recall("color"))[0] == "favorite color: blue: like the sea"
    assert run(manager.get_user_preferences()) == {"tone": "formal"}


def test_the_context_for_a_prompt_holds_all_tiers_and_no_preference_twice(manager: MemoryManager):
    talk(manager, "we painted the kitchen yellow")
    run(manager.end_conversation())
    run(manager.remember("kitchen", "has a yellow wall"))
    run(manager.set_preference("kitchen music", "jazz"))
    talk(manager, "what about the kitchen?")
    context = run(manager.build_context_for_llm("kitchen yellow"))
    assert contents(context["session_messages"]) == ["what about the kitchen?"]
    assert contents(context["relevant_history"]) == ["we painted the kitchen yellow"]
    assert context["relevant_memories"] == ["kitchen: has a yellow wall"]
    assert context["user_preferences"] == {"kitchen music": "jazz"}
    assert context.keys() == {"session_messages", "relevant_history", "relevant_memories", "user_preferences"}


def test_messages_are_in_the_context_as_they_are_stored(manager: MemoryManager):
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    talk(manager, f"my token is {token}")
    [said] = contents(run(manager.get_session_context()))
    assert said.startswith("my token is [")
    assert token not in said
    assert contents(run(manager.get_session_context())) == [said]
    run(manager.end_conversation())
    assert contents(run(manager.search_history("my token is", limit=1))) == [said]


def test_hidden_topics_are_in_no_part_of_the_context(manager: MemoryManager, engine: MemoryEngine):
    flags = {"sensitive_topics": ["legal"]}
    conversations = Conversations(engine)
    say(conversations, "the red car was sold", AGENT, session_id="past")
    say(conversations, "the red car is before court", AGENT, session_id="past", metadata=flags)
    for key, value in (("car", "is red"), ("court", "about the red car")):
        run(manager.remember(key, value))
        run(manager.set_preference(f"{key} talk", value))
    court = [one for one in engine.page(AGENT, offset=0, limit=9).memories if (one.key or "").startswith("court")]
    assert len(court) == 2
    for memory in court:
        engine.update(AGENT, memory.id, MemoryPatch(metadata=flags))
    whole = run(manager.build_context_for_llm("red car"))
    assert [len(whole[key]) for key in ("relevant_history", "relevant_memories", "user_preferences")] == [2, 2, 2]
    engine.write(AGENT, lambda tx: tx.connection.execute('UPDATE agents SET policy = \'{"hidden_topics": ["legal"]}\''))
    context = run(manager.build_context_for_llm("red car"))
    assert contents(context["relevant_history"]) == ["the red car was sold"]
    assert context["relevant_memories"] == ["car: is red"]
    assert context["user_preferences"] == {"car talk": "is red"}
    assert len(run(manager.search_history("red car"))) == 2


def test_sixteen_tasks_at_once_lose_no_message_and_start_one_conversation(engine: MemoryEngine):
    async def talk() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
        async with MemoryManager.over(engine, session_max_messages=1000) as manager:
            await asyncio.gather(
                *(manager.add_to_session("user", f"{task}-{turn}") for turn in range(5) for task in range(16))
            )
            return await manager.get_session_context(), await manager.history.list_conversations()

    said, conversations = run(talk())
    assert sorted(contents(said)) == sorted(f"{task}-{turn}" for turn in range(5) for task in range(16))
    assert [one["message_count"] for one in conversations] == [80]


def test_slow_work_does_not_block_the_event_loop(settings: Settings):
    class WaitingEmbedder(FakeEmbedder):
        """Embeds a query when the loop has turned meanwhile."""

        def __init__(self) -> None:
            self.turned = Event()
            self.waited: list[bool] = []

        def embed_query(self, text: str) -> Any:
            self.waited.append(self.turned.wait(30))
            return super().embed_query(text)

    async def turn(embedder: WaitingEmbedder) -> None:
        for _ in range(100):
            await asyncio.sleep(0)
        embedder.turned.set()

    async def both(manager: MemoryManager, embedder: WaitingEmbedder) -> None:
        await manager.initialize()
        await asyncio.gather(manager.build_context_for_llm("x"), turn(embedder))

    embedder = WaitingEmbedder()
    with closing(MemoryEngine.open(settings, embedder)) as engine:
        say(Conversations(engine), "something", AGENT)
        run(both(MemoryManager.over(engine), embedder))
    assert embedder.waited
    assert all(embedder.waited)


def test_a_restarted_manager_resumes_the_active_conversation(settings: Settings):
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        manager = opened(engine, session_max_messages=3)
        conversation_id = run(manager.start_conversation())
        talk(manager, *"abcd")
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        manager = opened(engine, session_max_messages=3)
        assert contents(run(manager.get_session_context())) == list("bcd")
        talk(manager, "e")
        run(manager.clear_session())
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        manager = opened(engine, session_max_messages=3)
        assert run(manager.get_session_context()) == []
        run(manager.end_conversation())
        assert contents(run(manager.search_history("a", limit=1))) == ["a"]
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        manager = opened(engine)
        assert run(manager.get_session_context()) == []
        assert run(manager.start_conversation()) != conversation_id


def test_a_restarted_manager_ignores_conversations_of_others(engine: MemoryEngine):
    sessions = Sessions(engine)
    first = run(opened(engine).start_conversation())
    for number in range(120):
        sessions.start(AGENT, f"of somebody else {number}", metadata={"started_by": "me"})
    sessions.start(Scope("another"), metadata={"started_by": "MemoryManager"})
    say(Conversations(engine), "not the manager's", AGENT)
    manager = opened(engine)
    talk(manager, "goes on")
    kept = run(manager.get_conversation_history(first))
    assert kept is not None
    assert contents(kept["messages"]) == ["goes on"]


def test_a_killed_process_loses_no_acknowledged_message(tmp_path: Path):
    acknowledged: list[str] = []
    chance = random.Random(8900)
    for number in range(ROUNDS):
        acknowledged += lines_until_killed(
            "tests.conversations.talking_process", tmp_path, f"r{number}", lines=chance.randrange(20, 120)
        )
        with closing(MemoryEngine.open(Settings(data_dir=tmp_path), FakeEmbedder())) as engine:
            engine.warm_up()
            manager = opened(engine)
            [conversation] = run(manager.history.list_conversations())
            whole = run(manager.get_conversation_history(conversation["id"]))
            assert whole is not None
            said = contents(whole["messages"])
            assert len(said) == len(set(said))
            assert set(acknowledged) <= set(said)
            assert contents(run(manager.get_session_context())) == said[-50:]
            assert list(engine.check()) == []
    with closing(MemoryEngine.open(Settings(data_dir=tmp_path), FakeEmbedder())) as engine:
        manager = opened(engine)
        run(manager.end_conversation())
        assert contents(run(manager.search_history(acknowledged[0], limit=1))) == [acknowledged[0]]


def test_a_conversation_that_cannot_be_embedded_stays_active(settings: Settings):
    with closing(MemoryEngine.open(settings, BrokenEmbedder())) as engine:
        manager = opened(engine)
        conversation_id = run(manager.start_conversation())
        talk(manager, "said without a model")
        for verb in (manager.end_conversation, manager.start_conversation):
            with pytest.raises(EmbeddingUnavailable):
                run(verb())
        talk(manager, "and more")
        assert len(run(manager.get_session_context())) == 2
        with pytest.raises(EmbeddingUnavailable):
            run(manager.remember("key", "value"))
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        manager = opened(engine)
        assert len(run(manager.get_session_context())) == 2
        run(manager.end_conversation())
        kept = run(manager.get_conversation_history(conversation_id))
        assert kept is not None
        assert kept["ended_at"] is not None
        assert contents(run(manager.search_history("without a model", limit=1))) == ["said without a model"]


def test_a_message_after_a_concurrent_end_starts_a_new_conversation(manager: MemoryManager, engine: MemoryEngine):
    first = run(manager.start_conversation())
    talk(manager, "one")
    Sessions(engine).end(AGENT, first)
    assert run(manager.get_session_context()) == []
    talk(manager, "two")
    assert contents(run(manager.get_session_context())) == ["two"]
    assert [one["message_count"] for one in run(manager.history.list_conversations())] == [1, 1]


def test_two_agents_share_only_the_engine(engine: MemoryEngine):
    ana, ben = opened(engine, "ana"), opened(engine, "ben")
    for manager, name in ((ana, "ana"), (ben, "ben")):
        talk(manager, f"{name} has a secret")
        run(manager.end_conversation())
        run(manager.remember("secret", f"of {name}"))
        run(manager.set_preference("secret", name))
        talk(manager, f"{name} again")
    context = run(ana.build_context_for_llm("secret"))
    assert contents(context["session_messages"]) == ["ana again"]
    assert contents(context["relevant_history"]) == ["ana has a secret"]
    assert context["relevant_memories"] == ["secret: of ana"]
    assert context["user_preferences"] == {"secret": "ana"}


def test_all_tiers_work_with_the_real_model(tmp_path: Path):
    """The lifecycle of the seed: talk, end, come back, and be understood."""
    config = MemoryConfig(
        session_max_messages=10,
        history_db=tmp_path / "data" / "test_memory.db",
        chromadb_path=tmp_path / "data" / "chromadb",
        mem0_llm_provider="ollama",
        mem0_llm_model="qwen3:8b",
    )

    async def first_day() -> str:
        async with MemoryManager(config) as manager:
            conversation_id = await manager.start_conversation()
            await manager.add_to_session("user", "We adopted a puppy from the shelter on Sunday")
            await manager.add_to_session("assistant", "Congratulations! What is it called?")
            await manager.add_to_session("user", "The dinner guests cancelled, by the way")
            await manager.remember("diet", "eats no meat and no fish")
            await manager.remember("job", "works as a nurse in Leeds")
            await manager.set_preference("answers", "short")
            await manager.end_conversation()
            return conversation_id

    async def second_day() -> tuple[dict[str, Any], list[str], dict[str, Any] | None]:
        async with MemoryManager(config) as manager:
            await manager.add_to_session("user", "Good morning")
            context = await manager.build_context_for_llm("Do I have a dog?")
            recalled = await manager.recall("Is the user a vegetarian?")
            return context, recalled, await manager.get_conversation_history(conversation_id)

    conversation_id = run(first_day())
    if Settings(data_dir=tmp_path).database_url is None:
        assert (tmp_path / "data" / "test_memory.db").is_file()
    assert not (tmp_path / "data" / "chromadb").exists()
    context, recalled, whole = run(second_day())
    assert recalled[0] == "diet: eats no meat and no fish"
    assert contents(context["session_messages"]) == ["Good morning"]
    assert context["relevant_history"][0]["content"] == "We adopted a puppy from the shelter on Sunday"
    assert context["relevant_history"][0]["similarity"] > 0.2
    assert len(context["relevant_memories"]) == 2
    assert context["user_preferences"] == {"answers": "short"}
    assert whole is not None
    assert len(whole["messages"]) == 3


def test_one_folder_is_for_one_manager_at_a_time(tmp_path: Path):
    async def twice() -> None:
        async with MemoryManager(MemoryConfig(history_db=tmp_path / "memory.db")):
            with pytest.raises(StoreUnusable):
                await MemoryManager(MemoryConfig(history_db=tmp_path / "other.db")).initialize()

    run(twice())


def test_an_unknown_embedder_and_a_closed_manager_are_refused(tmp_path: Path):
    with pytest.raises(InvalidRequest, match="'word2vec' is not known"):
        MemoryManager(MemoryConfig(history_db=tmp_path / "memory.db", mem0_embedder_provider="word2vec"))
    with pytest.raises(InvalidRequest, match=r"initialize\(\) first"):
        run(MemoryManager(MemoryConfig(history_db=tmp_path / "memory.db")).add_to_session("user", "hello"))
