"""Contexts of active conversations: held in memory, and always equal to the database."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from souvenir.conversations.messages import Conversations
from souvenir.conversations.sessions import Sessions
from souvenir.conversations.working_memory import WorkingMemory
from souvenir.core.errors import AgentNotFound, IdempotencyKeyReused, SessionEnded, SessionNotFound
from souvenir.core.settings import Settings
from souvenir.core.types import MessageRole, PassageKind, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.idempotency import Once
from souvenir.store.messages.messages import MessageDraft
from tests.conversations.talk import ANN, BEN, BrokenEmbedder, draft, found, say
from tests.fake_embedder import FakeEmbedder


@pytest.fixture
def windows(engine: MemoryEngine, conversations: Conversations, sessions: Sessions) -> WorkingMemory:
    """With room for four messages, and a running conversation `s`."""
    sessions.start(ANN, "s")
    return WorkingMemory(engine, conversations, max_messages=4)


def contents(windows: WorkingMemory, session_id: str = "s", scope: Scope = ANN, limit: int | None = None) -> list[str]:
    return [message.content for message in windows.newest(scope, session_id, limit)]


def append(windows: WorkingMemory, *texts: str, session_id: str = "s", scope: Scope = ANN) -> None:
    for text in texts:
        windows.append(scope, session_id, draft(text))


def test_appended_messages_are_in_the_context_with_role_and_time(windows: WorkingMemory):
    message = windows.append(ANN, "s", MessageDraft(MessageRole.ASSISTANT, "hello"))
    [said] = windows.newest(ANN, "s")
    assert (said.role, said.content, said.position) == (MessageRole.ASSISTANT, "hello", 0)
    assert said.timestamp == pytest.approx(message.created_at.timestamp(), abs=1e-6)
    assert said.to_dict() == {"role": "assistant", "content": "hello", "timestamp": said.timestamp}


def test_the_newest_messages_stay_oldest_first_and_fit_a_number_of_tokens(windows: WorkingMemory):
    append(windows, *"abcde")
    assert contents(windows) == list("bcde")
    assert contents(windows, limit=2) == list("de")
    append(windows, "x" * 40)
    assert [one.content for one in windows.fitting(ANN, "s", 11)] == [*"cde", "x" * 40]
    assert [one.content for one in windows.fitting(ANN, "s", 10)] == ["x" * 40]


@pytest.mark.parametrize("read_before", [True, False])
def test_changes_by_other_routes_are_visible_in_the_context(
    windows: WorkingMemory, conversations: Conversations, engine: MemoryEngine, read_before: bool
):
    append(windows, "first", "second")
    assert not read_before or contents(windows) == ["first", "second"]
    third = say(conversations, "third", session_id="s")
    assert not read_before or contents(windows) == ["first", "second", "third"]
    conversations.edit(ANN, third.uid, content="changed")
    assert contents(windows) == ["first", "second", "changed"]
    append(windows, "fourth")
    assert contents(windows) == ["first", "second", "changed", "fourth"]


def test_a_message_of_another_conversation_is_in_that_context_only(windows: WorkingMemory, sessions: Sessions):
    sessions.start(ANN, "t")
    sessions.start(BEN, "s")
    append(windows, "mine")
    append(windows, "other", session_id="t")
    append(windows, "bens", scope=BEN)
    assert (contents(windows), contents(windows, "t"), contents(windows, scope=BEN)) == (["mine"], ["other"], ["bens"])


def test_a_cleared_context_is_empty_and_the_history_whole(
    windows: WorkingMemory, sessions: Sessions, conversations: Conversations
):
    append(windows, "blue whale", "red fox")
    assert windows.clear(ANN, "s") == 2
    assert contents(windows) == []
    append(windows, "green frog")
    assert contents(windows) == ["green frog"]
    sessions.end(ANN, "s")
    assert sessions.get(ANN, "s").messages == 3
    assert found(conversations, "blue whale", limit=1) == ["blue whale"]


def test_an_ended_conversation_has_no_context_and_takes_no_messages(windows: WorkingMemory, sessions: Sessions):
    append(windows, "a")
    assert contents(windows) == ["a"]
    sessions.end(ANN, "s")
    assert contents(windows) == []
    with pytest.raises(SessionEnded):
        append(windows, "b")


def test_a_missing_conversation_is_not_created(windows: WorkingMemory, engine: MemoryEngine):
    for work in (
        lambda scope: windows.newest(scope, "nobody"),
        lambda scope: windows.clear(scope, "nobody"),
        lambda scope: windows.append(scope, "nobody", draft("x")),
    ):
        with pytest.raises(SessionNotFound):
            work(ANN)
        with pytest.raises(AgentNotFound):
            work(Scope("nobody"))
    with engine.namespace(Scope("nobody")) as (_, namespace):
        assert namespace is None


def test_a_repeated_append_is_stored_once(windows: WorkingMemory):
    once = Once.of("append_message", "key", {"content": "hello"})
    first = windows.append(ANN, "s", draft("hello"), once=once)
    assert contents(windows) == ["hello"]
    windows.clear(ANN, "s")
    replays: list[str] = []
    again = windows.append(ANN, "s", draft("hello"), once=replace(once, replayed=lambda: replays.append("again")))
    assert (again.uid, replays, contents(windows)) == (first.uid, ["again"], [])
    with pytest.raises(IdempotencyKeyReused):
        windows.append(ANN, "s", draft("bye"), once=Once.of("append_message", "key", {"content": "bye"}))


def test_appending_needs_no_model(settings: Settings):
    with closing(MemoryEngine.open(settings, BrokenEmbedder())) as engine:
        Sessions(engine).start(ANN, "s")
        windows = WorkingMemory(engine, Conversations(engine))
        append(windows, "said all the same")
        assert contents(windows) == ["said all the same"]
        with engine.namespace(ANN) as (connection, _):
            assert connection.execute("SELECT count(*) FROM passages WHERE kind = ?", (PassageKind.MESSAGE,)).get == 0


def test_evicted_contexts_are_read_again(engine: MemoryEngine, conversations: Conversations, sessions: Sessions):
    windows = WorkingMemory(engine, conversations, memory_chars=10)
    for session_id in "abc":
        sessions.start(ANN, session_id)
        append(windows, session_id * 6, session_id * 20, session_id=session_id)
    for _ in range(2):
        for session_id in "abc":
            assert contents(windows, session_id) == [session_id * 6, session_id * 20]


@pytest.mark.sqlite_only(reason="restores a backup")
def test_a_restored_backup_brings_its_contexts_back(
    windows: WorkingMemory, engine: MemoryEngine, conversations: Conversations
):
    append(windows, "kept")
    backup = engine.back_up(reason="test")
    append(windows, "said after the backup")
    assert len(contents(windows)) == 2
    engine.restore(backup.name)
    assert contents(windows) == ["kept"]
    append(windows, "said after the restore")
    assert contents(windows) == ["kept", "said after the restore"]


def test_sixteen_concurrent_appends_lose_nothing_and_agree_on_the_order(
    engine: MemoryEngine, conversations: Conversations, sessions: Sessions
):
    windows = WorkingMemory(engine, conversations, max_messages=1000)
    sessions.start(ANN, "s")

    def talk(number: int) -> list[str]:
        append(windows, *(f"{number}-{turn}" for turn in range(10)))
        return contents(windows)

    with ThreadPoolExecutor(16) as pool:
        seen = list(pool.map(talk, range(16)))
    stored, total = conversations.of_session(ANN, "s", limit=1000)
    whole = [message.content for message in stored]
    assert (total, contents(windows)) == (160, whole)
    for number, view in enumerate(seen):
        assert view == whole[: len(view)]
        assert [text for text in view if text.startswith(f"{number}-")] == [f"{number}-{turn}" for turn in range(10)]


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "say", "edit", "clear", "read", "reopen", "other"]),
        st.sampled_from(["s", "t"]),
        st.text("xyz", min_size=1, max_size=30),
    ),
    max_size=25,
)


@hypothesis_settings(max_examples=25)
@given(STEPS, st.integers(1, 4), st.sampled_from([0, 40, 10**6]))
def test_contexts_equal_a_plain_list_after_any_operations(
    steps: Sequence[tuple[str, str, str]], max_messages: int, memory_chars: int
):
    with (
        TemporaryDirectory() as folder,
        closing(MemoryEngine.open(Settings(data_dir=Path(folder)), FakeEmbedder())) as engine,
    ):
        conversations, sessions = Conversations(engine), Sessions(engine)
        plain: dict[str, list[str]] = {"s": [], "t": []}
        for session_id in plain:
            sessions.start(ANN, session_id)
        windows = WorkingMemory(engine, conversations, max_messages=max_messages, memory_chars=memory_chars)
        for verb, session_id, text in steps:
            match verb:
                case "append":
                    append(windows, text, session_id=session_id)
                    plain[session_id].append(text)
                case "say":
                    say(conversations, text, session_id=session_id)
                    plain[session_id].append(text)
                case "edit" if plain[session_id]:
                    stored, _ = conversations.of_session(ANN, session_id, limit=1000)
                    conversations.edit(ANN, stored[-1].uid, content=text)
                    plain[session_id][-1] = text
                case "clear":
                    windows.clear(ANN, session_id)
                    plain[session_id].clear()
                case "reopen":
                    windows = WorkingMemory(engine, conversations, max_messages=max_messages, memory_chars=memory_chars)
                case "other":
                    say(conversations, text, scope=BEN)
            for name, said in plain.items():
                assert contents(windows, name) == said[-max_messages:]
