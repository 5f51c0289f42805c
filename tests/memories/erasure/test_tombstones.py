"""Data with a tombstone stays deleted after any restore of any backup; everything else is restored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from souvenir.conversations.agents import Agents
from souvenir.conversations.blocks import Blocks
from souvenir.conversations.messages import Conversations
from souvenir.core.errors import AgentNotFound, BlockNotFound
from souvenir.core.settings import Settings
from souvenir.core.timestamps import utc_now
from souvenir.core.types import MemoryDraft, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store import pending_removals, tombstones
from souvenir.store.messages.blocks import BlockDraft
from souvenir.store.selection import Chooses, Selection, resolve
from souvenir.store.sql import Connection
from souvenir.store.sqlite.restore import restore_offline
from tests.conversations.talk import ANN, BEN, draft, found, listed, say
from tests.fake_embedder import FakeEmbedder

pytestmark = pytest.mark.sqlite_only(reason="restores backups")


@pytest.fixture
def opened(settings: Settings) -> Iterator[MemoryEngine]:
    """An engine that a test may close itself."""
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        yield engine


def erase(engine: MemoryEngine, chooses: Chooses, value: str | int, scope: Scope = ANN) -> None:
    """Erase from the current database."""

    def begin(connection: Connection) -> pending_removals.RemovalStep:
        targets = resolve(connection, Selection(scope.namespace, chooses, value))
        assert targets
        tombstones.create(connection, targets, utc_now())
        return pending_removals.begin(connection, targets, "erasing")

    engine.models.remove(begin)
    while engine.models.remove(lambda connection: pending_removals.advance(connection, "erasing", utc_now())):
        pass


def furnish(engine: MemoryEngine) -> tuple[str, int]:
    """Store a message and a memory, and return their ids."""
    conversations = Conversations(engine)
    conversations.add(ANN, [draft("own apple", session_id="own", user="mia")])
    conversations.add(ANN, [draft("shared apple", session_id="shared", user="mia")])
    conversations.add(ANN, [draft("tom apple", session_id="shared", user="tom")])
    one = say(conversations, "single apple", session_id="single")
    say(conversations, "ben apple", BEN)
    memory = engine.add(ANN, MemoryDraft("apple memory", "notes/fruit")).id
    engine.add(ANN, MemoryDraft("apple notebook", "notebook"))
    Blocks(engine).create(ANN, BlockDraft("human", "apple block", None, 100, read_only=False))
    assert memory is not None
    return one.uid, memory


MESSAGES = {"own apple", "shared apple", "tom apple", "single apple"}
MEMORIES = {"apple memory", "apple notebook"}


def held(engine: MemoryEngine) -> set[str]:
    """Return every text of the first agent."""
    texts = {memory.text for memory in engine.page(ANN, offset=0, limit=100).memories}
    try:
        texts |= set(listed(Conversations(engine)))
        texts.add(Blocks(engine).get(ANN, "human").value)
    except (AgentNotFound, BlockNotFound):
        pass
    return texts


CASES: dict[str, tuple[Chooses, str | int, set[str]]] = {
    "agent": (Chooses.AGENT, ANN.namespace, set()),
    "user": (Chooses.USER, "mia", {*MEMORIES, "tom apple", "single apple", "apple block"}),
    "session": (Chooses.SESSION, "shared", {*MEMORIES, "own apple", "single apple", "apple block"}),
    "message": (Chooses.MESSAGE, "", {*MEMORIES, *MESSAGES, "apple block"} - {"single apple"}),
    "memory": (Chooses.MEMORY, 0, {*MESSAGES, "apple notebook", "apple block"}),
    "source": (Chooses.SOURCE, "notes", {*MESSAGES, "apple notebook", "apple block"}),
    "block": (Chooses.BLOCK, "human", {*MESSAGES, *MEMORIES}),
}


@pytest.mark.parametrize("case", CASES)
def test_restored_backups_contain_everything_except_erased_data(opened: MemoryEngine, case: str):
    chooses, value, left = CASES[case]
    uid, memory_id = furnish(opened)
    value = uid if case == "message" else memory_id if case == "memory" else value
    backup = opened.back_up(reason="manual").name
    erase(opened, chooses, value)
    assert held(opened) == left
    Conversations(opened).add(BEN, [draft("a pear")])
    before = opened.restore(backup)
    assert held(opened) == left
    assert found(Conversations(opened), "apple", BEN) == ["ben apple"]
    assert list(opened.check()) == []
    for _ in range(2):
        before = opened.restore(before.name)
        assert held(opened) == left
    assert list(opened.check()) == []


def test_erasing_a_user_erases_data_that_only_a_backup_contains(opened: MemoryEngine):
    furnish(opened)
    say(Conversations(opened), "an older apple", session_id="older", user="mia")
    backup = opened.back_up(reason="manual").name
    with opened.namespace(ANN) as (connection, _):
        target = resolve(connection, Selection(ANN.namespace, Chooses.SESSION, "older"))
    opened.models.remove(lambda connection: pending_removals.begin(connection, target, "deleting"))
    opened.models.remove(lambda connection: pending_removals.advance(connection, "deleting", utc_now()))
    erase(opened, Chooses.USER, "mia")
    opened.restore(backup)
    assert set(listed(Conversations(opened))) == {"tom apple", "single apple"}


def test_a_recreated_agent_is_not_affected_by_the_old_tombstone(opened: MemoryEngine):
    furnish(opened)
    old = opened.back_up(reason="manual").name
    erase(opened, Chooses.AGENT, ANN.namespace)
    say(Conversations(opened), "a new pear", session_id="own", user="mia")
    new = opened.back_up(reason="manual").name
    opened.restore(old)
    with pytest.raises(AgentNotFound):
        Agents(opened).get(ANN)
    opened.restore(new)
    assert held(opened) == {"a new pear"}
    say(Conversations(opened), "another pear", session_id="own", user="mia")
    assert held(opened) == {"a new pear", "another pear"}
    assert list(opened.check()) == []


def test_an_offline_restore_replays_tombstones_too(opened: MemoryEngine, settings: Settings):
    furnish(opened)
    backup = opened.back_up(reason="manual").name
    erase(opened, Chooses.USER, "mia")
    opened.close()
    restore_offline(settings, backup)
    assert "own apple" not in database_bytes(settings)
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as again:
        assert set(listed(Conversations(again))) == {"tom apple", "single apple"}
        assert list(again.check()) == []


def test_tombstones_come_from_other_backups_if_the_database_is_lost(opened: MemoryEngine, settings: Settings):
    furnish(opened)
    old = opened.back_up(reason="manual").name
    erase(opened, Chooses.USER, "mia")
    opened.back_up(reason="later")
    opened.close()
    settings.database_path.write_bytes(b"no database" * 1000)
    done = restore_offline(settings, old)
    assert not done.keys_carried_over
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as again:
        assert set(listed(Conversations(again))) == {"tom apple", "single apple"}


def test_a_restored_database_contains_no_erased_bytes(opened: MemoryEngine, settings: Settings):
    furnish(opened)
    Conversations(opened).add(ANN, [draft(f"own apple, number {n}", session_id="own", user="mia") for n in range(500)])
    backup = opened.back_up(reason="manual").name
    erase(opened, Chooses.USER, "mia")
    opened.restore(backup)
    opened.close()
    assert "own apple" not in database_bytes(settings)


def database_bytes(settings: Settings) -> str:
    return Path(settings.database_path).read_bytes().decode("latin-1")
