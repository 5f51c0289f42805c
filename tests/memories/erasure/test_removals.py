"""Deleted agents, users, sessions and messages are removed everywhere at once, and nothing else is."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event

import pytest

from souvenir.conversations.agents import Agents
from souvenir.conversations.blocks import BlockChange, Blocks
from souvenir.conversations.messages import Conversations
from souvenir.conversations.sessions import Sessions
from souvenir.core.errors import AgentNotFound, MessageNotFound, NotFound, SessionNotFound, UserNotFound
from souvenir.core.settings import Settings
from souvenir.core.timestamps import utc_now
from souvenir.core.types import MemoryDraft, Scope, SearchQuery
from souvenir.jobs.worker import Jobs
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.erasure import Erasure
from souvenir.memories.reembedding import Reembedding
from souvenir.memories.removals import Removals
from souvenir.store import pending_removals
from souvenir.store.admin.jobs import REEMBED
from souvenir.store.admin.jobs import insert as insert_job
from souvenir.store.idempotency import Once
from souvenir.store.messages.blocks import BlockDraft
from souvenir.store.messages.sessions import SessionFilter
from souvenir.store.pending_removals import Removable, Target
from souvenir.store.selection import Chooses, Selection
from tests.conversations.talk import ANN, BEN, draft, found, listed, say
from tests.fake_embedder import FakeEmbedder
from tests.memories.erasure.conftest import no_jobs
from tests.memories.reembedding.embedders import OTHER, Held, OtherEmbedder

PATIENCE_S = 60.0


def rows_of(engine: MemoryEngine) -> dict[str, int]:
    """Return the row counts of the tables with data of agents."""
    tables = (
        *("namespaces", "agents", "users", "sessions", "messages", "memories", "blocks", "block_history", "links"),
        *("history", "passages", "vectors", "idempotency_keys", "jobs", "removals", "tombstones"),
    )
    with engine.namespace(Scope()) as (connection, _):
        return {table: int(connection.execute(f"SELECT count(*) FROM {table}").get) for table in tables}


def furnish(engine: MemoryEngine, scope: Scope) -> None:
    """Store examples of everything that an agent can have."""
    conversations, blocks = Conversations(engine), Blocks(engine)
    once = Once.of("messages", f"key of {scope.namespace}", {})
    conversations.add(scope, [draft("the cat sleeps", session_id="cats", user="mia", speaker="Mia")], once=once)
    conversations.add(scope, [draft("a dog barks", session_id="dogs"), draft("no user here")])
    first = engine.add(scope, MemoryDraft("likes tea", "notes", {"n": 1}))
    assert first.id is not None
    engine.supersede(scope, first.id, text="likes coffee")
    gone = engine.add(scope, MemoryDraft("was forgotten", "notes")).id
    assert gone is not None
    engine.delete(scope, gone)
    blocks.create(scope, BlockDraft("human", "Mia", None, 100, read_only=False))
    blocks.update(scope, "human", BlockChange(value="Mia, 30"))
    engine.write_rows(lambda connection: insert_job(connection, f"{scope.namespace}-1", "build", scope, {}, utc_now()))


def test_deleting_an_agent_clears_every_table_and_index_of_it_alone(
    engine: MemoryEngine, removals: Removals, settings: Settings
):
    furnish(engine, BEN)
    before = rows_of(engine)
    furnish(engine, ANN)
    both = rows_of(engine)
    assert found(Conversations(engine), "cat", ANN)[0] == "the cat sleeps"
    assert engine.search(ANN, SearchQuery("tea coffee")).hits
    row = Agents(engine).get(ANN).namespace_id
    engine.snapshot()
    snapshots = {path.name for path in settings.index_dir.iterdir()}
    removed = removals.remove(ANN, Chooses.AGENT)
    after = rows_of(engine)
    assert after == before
    assert (removed.users, removed.sessions, removed.messages, removed.vectors, removed.jobs) == (1, 3, 3, 5, 1)
    counted = {"namespaces", "block_history", "removals", "tombstones"}
    assert {name: both[name] - before[name] for name in both if name not in counted} == {
        name: getattr(removed, name) for name in both if name not in counted
    }
    left = {path.name for path in settings.index_dir.iterdir()}
    assert {name.split(".")[0] for name in snapshots - left} == {f"{row}", f"{row}-message"}
    assert found(Conversations(engine), "cat", BEN)[0] == "the cat sleeps"
    with pytest.raises(AgentNotFound):
        Agents(engine).get(ANN)


def test_a_new_agent_of_the_same_name_is_empty(engine: MemoryEngine, removals: Removals):
    furnish(engine, ANN)
    old = Agents(engine).get(ANN)
    removals.remove(ANN, Chooses.AGENT)
    conversations = Conversations(engine)
    say(conversations, "hello")
    new = Agents(engine).get(ANN)
    assert new.namespace_id > old.namespace_id
    assert new.uid != old.uid
    assert listed(conversations) == found(conversations, "cat dog tea hello") == ["hello"]
    assert engine.count(ANN) == 0


def test_deleting_a_session_deletes_only_its_messages(engine: MemoryEngine, removals: Removals):
    conversations = Conversations(engine)
    for session in ("one", "two"):
        for number in range(3):
            say(conversations, f"apple {session} {number}", session_id=session)
    removed = removals.remove(ANN, Chooses.SESSION, "one")
    assert (removed.sessions, removed.messages, removed.passages, removed.vectors) == (1, 3, 3, 3)
    assert set(found(conversations, "apple one", limit=10)) == {f"apple two {number}" for number in range(3)}
    with pytest.raises(SessionNotFound):
        Sessions(engine).get(ANN, "one")
    assert len(listed(conversations, session_id="two")) == 3


def test_deleting_a_user_deletes_their_messages_and_their_own_sessions(engine: MemoryEngine, removals: Removals):
    conversations = Conversations(engine)
    say(conversations, "mine alone", session_id="own", user="mia")
    say(conversations, "nobody named", session_id="own")
    say(conversations, "mia in the round", session_id="shared", user="mia")
    say(conversations, "tom in the round", session_id="shared", user="tom")
    say(conversations, "quite another", session_id="other", user="tom")
    removed = removals.remove(ANN, Chooses.USER, "mia")
    assert (removed.users, removed.sessions, removed.messages) == (1, 1, 3)
    assert sorted(listed(conversations)) == ["quite another", "tom in the round"]
    sessions, _ = Sessions(engine).page(ANN, SessionFilter())
    assert {one.name for one in sessions} == {"shared", "other"}
    assert [one.name for one in Sessions(engine).users(ANN)[0]] == ["tom"]


def test_a_deleted_message_is_not_found_but_its_neighbours_are(engine: MemoryEngine, removals: Removals):
    conversations = Conversations(engine)
    said = [say(conversations, f"apple {number}") for number in range(3)]
    assert removals.remove(ANN, Chooses.MESSAGE, said[1].uid).messages == 1
    assert sorted(found(conversations, "apple")) == ["apple 0", "apple 2"]
    with pytest.raises(MessageNotFound):
        removals.remove(ANN, Chooses.MESSAGE, said[1].uid)


@pytest.mark.parametrize(
    ("chooses", "value", "error"),
    [
        (Chooses.USER, "nobody", UserNotFound),
        (Chooses.SESSION, "none", SessionNotFound),
        (Chooses.MESSAGE, "none", MessageNotFound),
    ],
)
def test_missing_or_foreign_targets_are_not_found_and_nothing_changes(
    engine: MemoryEngine, removals: Removals, chooses: Chooses, value: str, error: type[NotFound]
):
    furnish(engine, ANN)
    theirs = say(Conversations(engine), "hi", BEN, session_id="theirs", user="tom")
    others = {Chooses.USER: "tom", Chooses.SESSION: "theirs", Chooses.MESSAGE: theirs.uid}[chooses]
    before = rows_of(engine)
    for name in (value, others):
        with pytest.raises(error):
            removals.remove(ANN, chooses, name)
        with pytest.raises(AgentNotFound):
            removals.remove(Scope("nobody"), chooses, name)
    with pytest.raises(AgentNotFound):
        removals.remove(Scope("nobody"), Chooses.AGENT)
    assert rows_of(engine) == before


def test_repeating_the_request_of_a_deleted_object_creates_a_new_one(engine: MemoryEngine, removals: Removals):
    conversations = Conversations(engine)
    once = Once.of("messages", "key", {})
    [first] = conversations.add(ANN, [draft("hello", session_id="s")], once=once)
    assert conversations.add(ANN, [draft("hello", session_id="s")], once=once)[0].uid == first.uid
    assert removals.remove(ANN, Chooses.MESSAGE, first.uid).idempotency_keys == 1
    [again] = conversations.add(ANN, [draft("hello", session_id="s")], once=once)
    assert again.uid != first.uid


MANY = 2 * pending_removals.AT_ONCE + 10


@pytest.mark.parametrize(
    ("chooses", "value"), [(Chooses.AGENT, None), (Chooses.USER, "mia"), (Chooses.SESSION, "long")]
)
def test_large_removals_run_in_batches_that_keep_the_store_consistent(
    engine: MemoryEngine, removals: Removals, chooses: Chooses, value: str | None
):
    conversations = Conversations(engine)
    conversations.add(ANN, [draft(f"apple {n}", session_id="long", user="mia") for n in range(MANY)])
    say(conversations, "apple of ben", BEN)
    assert found(conversations, "apple")
    assert removals.remove(ANN, chooses, value).messages == MANY
    assert found(conversations, "apple", BEN) == ["apple of ben"]


@pytest.mark.parametrize("chooses", [Chooses.AGENT, Chooses.SESSION])
def test_pending_removals_resume_at_the_next_start(settings: Settings, chooses: Chooses):
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        Conversations(engine).add(ANN, [draft(f"apple {n}", session_id="long") for n in range(MANY)])
        row = Agents(engine).get(ANN).namespace_id
        target = {Chooses.AGENT: Target(Removable.NAMESPACE, row), Chooses.SESSION: Target(Removable.SESSION, 1)}[
            chooses
        ]
        engine.models.remove(lambda connection: pending_removals.begin(connection, [target], "gone"))
        engine.models.remove(lambda connection: pending_removals.advance(connection, "gone", utc_now()))
        assert rows_of(engine)["messages"] == MANY - pending_removals.AT_ONCE
        assert list(engine.check()) == []
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        with closing(Removals(engine, on_jobs_gone=no_jobs)) as removals:
            removals.start()
            removals.finish()
            left = rows_of(engine)
        assert {left[table] for table in ("messages", "sessions", "passages", "removals")} == {0}
        assert left["namespaces"] == (0 if chooses is Chooses.AGENT else 1)
        assert list(engine.check()) == []


@pytest.mark.sqlite_only(reason="restores a backup")
def test_a_restored_backup_brings_a_deleted_agent_back(engine: MemoryEngine, removals: Removals):
    furnish(engine, ANN)
    backup = engine.back_up(reason="manual").name
    before = rows_of(engine)
    removals.remove(ANN, Chooses.AGENT)
    engine.restore(backup)
    restored = rows_of(engine)
    assert {**restored, "jobs": before["jobs"]} == before
    assert found(Conversations(engine), "cat")[0] == "the cat sleeps"


def test_an_index_loaded_during_the_removal_of_its_agent_is_discarded(engine: MemoryEngine, removals: Removals):
    conversations = Conversations(engine)
    conversations.add(ANN, [draft(f"apple {n}") for n in range(600)])
    registry = engine.models.serving.registry
    registry.drop(*registry.loaded())

    def search() -> int:
        searched = 0
        while True:
            try:
                found(conversations, "apple")
            except AgentNotFound:
                return searched
            searched += 1

    with ThreadPoolExecutor(3) as callers:
        searching = [callers.submit(search) for _ in range(3)]
        removed = removals.remove(ANN, Chooses.AGENT)
        assert all(one.result(PATIENCE_S) >= 0 for one in searching)
    assert removed.messages == 600
    assert all(not len(index) for index in engine.models.serving.registry.loaded().values())


@pytest.mark.parametrize("batch", [2, 4, 9])
def test_removing_an_agent_during_reembedding_removes_vectors_of_both_models(
    engine: MemoryEngine, removals: Removals, batch: int
):
    conversations = Conversations(engine)
    for scope in (ANN, BEN):
        conversations.add(scope, [draft(f"apple {n}") for n in range(250)])
        found(conversations, "apple", scope)
    held = Held(at=batch)
    with closing(Jobs(engine, [reembedding_with(engine, held)], queue_max=10, retention_days=1, lane=REEMBED)) as jobs:
        # The agent's own key may have asked for it: it is about the whole store all the same.
        job = jobs.submit("reembed", ANN, {"spec": OTHER.to_json()})
        jobs.start()
        assert held.reached.wait(PATIENCE_S)
        removed = removals.remove(ANN, Chooses.AGENT)
        held.open.set()
        assert jobs.wait(job.id, PATIENCE_S).error is None
    assert removed.messages == 250
    assert engine.models.serving.embedder.model_id == OtherEmbedder.model_id
    assert rows_of(engine)["vectors"] == rows_of(engine)["passages"] == 250
    assert found(conversations, "apple", BEN)


def reembedding_with(engine: MemoryEngine, held: Held) -> Reembedding:
    return Reembedding(engine, lambda spec: OtherEmbedder(held), lambda embedder: None)


def test_concurrent_deletes_of_one_target_count_it_once(engine: MemoryEngine, removals: Removals):
    conversations = Conversations(engine)
    conversations.add(ANN, [draft(f"apple {n}", session_id="s") for n in range(MANY)])

    def remove(_: int) -> int | None:
        try:
            return removals.remove(ANN, Chooses.SESSION, "s").messages
        except SessionNotFound:
            return None

    with ThreadPoolExecutor(4) as callers:
        done = list(callers.map(remove, range(4)))
    assert sorted(done, key=str) == sorted([MANY, None, None, None], key=str)


def test_a_message_during_the_removal_of_its_session_is_deleted_or_starts_a_new_one(
    engine: MemoryEngine, removals: Removals
):
    conversations = Conversations(engine)
    conversations.add(ANN, [draft(f"apple {n}", session_id="s") for n in range(MANY)])
    stop = Event()

    def write() -> list[str]:
        said = []
        while not stop.is_set():
            said.append(say(conversations, "a late apple", session_id="s").uid)
        return said

    with ThreadPoolExecutor(2) as callers:
        writing = [callers.submit(write) for _ in range(2)]
        try:
            removals.remove(ANN, Chooses.SESSION, "s")
        finally:
            stop.set()
        late = [uid for one in writing for uid in one.result(PATIENCE_S)]
    left = listed(conversations, session_id="s") if late else []
    assert set(left) <= {"a late apple"}
    assert len(left) <= len(late)


def test_a_small_erasure_is_done_when_another_one_of_the_same_begins(
    engine: MemoryEngine, conversations: Conversations
):
    """Otherwise each would take the message over from the one before, and none would remove it."""
    secret = say(conversations, "a secret")
    say(conversations, "a neighbour")
    erasure = Erasure(engine, on_jobs_gone=no_jobs)
    wanted = [Selection(ANN.namespace, Chooses.MESSAGE, secret.uid)]
    begun = erasure.begin(wanted, "first", backups=False)
    assert (begun["removed"]["messages"], begun["postings"]) == (1, 1)
    assert listed(conversations) == ["a neighbour"]
    with pytest.raises(NotFound):
        erasure.begin(wanted, "second", backups=False)
    assert list(engine.check()) == []
