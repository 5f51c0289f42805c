"""The graph is a function of the stored messages, independent of the order of writes, edits and deletes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule, run_state_machine_as_test

from souvenir.conversations.messages import Conversations
from souvenir.core.errors import AgentNotFound, MessageNotFound, SessionNotFound
from souvenir.core.settings import Settings
from souvenir.core.types import (
    ClaimedBy,
    ClaimKind,
    MemoryDraft,
    MemoryPatch,
    MessageRole,
    RecordKind,
    Scope,
)
from souvenir.knowledge.services import KnowledgeServices
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.removals import Removals
from souvenir.store.graph import claims, mentions
from souvenir.store.graph.claims import ClaimDraft
from souvenir.store.messages.messages import MessageDraft
from souvenir.store.selection import Chooses
from souvenir.store.sql import Connection
from souvenir.store.transaction import Transaction
from tests.fake_embedder import FakeEmbedder
from tests.thoroughness import sampled

ANN = Scope("ann", "tester")
TEXTS = st.sampled_from(
    [
        "My name is Alice",
        "Alice met Bob Lee in Lisbon",
        "In Lisbon Bob Lee bought a camera, see #travel",
        "We took the camera to New York",
        "She likes the colour of the camera",
        "It was another color, they say, and we saw the colors",
        "Nothing at all",
        "I will send Alice the camera by Friday. My sister Alice is away.",
        "<recalled_memory>\nGreta lives in Oslo\n</recalled_memory>\nIs Alice there?",
    ]
)
WHEN = st.datetimes(datetime(2023, 1, 1), datetime(2024, 3, 1)).map(lambda at: at.replace(tzinfo=UTC))  # noqa: DTZ001


@pytest.fixture
def engine(settings: Settings) -> Iterator[MemoryEngine]:
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        yield engine


@pytest.fixture
def graph(engine: MemoryEngine) -> Iterator[KnowledgeServices]:
    """What is derived agrees with what is stored at the end."""
    graph = KnowledgeServices.open(engine)
    yield graph
    assert list(engine.check()) == []


def say(engine: MemoryEngine, text: str, role: MessageRole = MessageRole.USER, **more: Any) -> str:
    [message] = Conversations(engine).add(ANN, [MessageDraft(role, text, **more)])
    return message.uid


def whole(engine: MemoryEngine) -> dict[str, Any]:
    """All of the graph, by keys instead of ids."""
    queries = {
        "concepts": "SELECT c.key, c.owners, s.key FROM concepts c LEFT JOIN concepts s ON s.id = c.same_as",
        "forms": "SELECT c.key, f.form, f.kind, f.owners FROM concept_forms f JOIN concepts c ON c.id = f.concept_id",
        "mentions": "SELECT m.kind, m.owner_id, c.key, m.form FROM mentions m JOIN concepts c ON c.id = m.concept_id",
        "neighbours": "SELECT a.key, b.key, n.month, n.owners FROM neighbours n JOIN concepts a ON a.id = n.concept_id "
        "JOIN concepts b ON b.id = n.other_id",
        "near": "SELECT a.key, b.key FROM near_concepts n JOIN concepts a ON a.id = n.concept_id "
        "JOIN concepts b ON b.id = n.other_id",
        "claims": "SELECT a.key, l.kind, l.text, b.key FROM claims l JOIN concepts a ON a.id = l.concept_id "
        "LEFT JOIN concepts b ON b.id = l.other_id",
        "statements": "SELECT message_id, kind, terms, value, due FROM statements",
        "definitions": "SELECT d.kind, d.owner_id, c.key, d.sentence, d.quality, d.role FROM definitions d "
        "JOIN concepts c ON c.id = d.concept_id",
        "graphs": "SELECT owners FROM graphs WHERE owners > 0",
        "topics": "SELECT (SELECT group_concat(concat_ws(' ', session_id, first_position, last_position, relevance) "
        "ORDER BY session_id, first_position) FROM topic_segments s WHERE s.topic_id = t.id), "
        "(SELECT group_concat(c.key || ' ' || o.weight ORDER BY c.key) "
        "FROM topic_concepts o JOIN concepts c ON c.id = o.concept_id WHERE o.topic_id = t.id) FROM topics t",
    }
    with engine.namespace(ANN) as (connection, _):
        return {name: sorted(connection.execute(query), key=repr) for name, query in queries.items()}


def concepts_named(connection: Connection) -> dict[str, int]:
    rows: Any = connection.execute("SELECT key, id FROM concepts")
    return dict(rows.fetchall())


def keys_of(engine: MemoryEngine) -> set[str]:
    with engine.namespace(ANN) as (connection, _):
        return {key for (key,) in connection.execute("SELECT key FROM concepts")}


def read_anew(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    """Forget all mentions, and let everything be read again, the last first."""

    def work(tx: Transaction) -> None:
        query = "SELECT DISTINCT kind, owner_id FROM mentions ORDER BY owner_id DESC"
        owners: list[Any] = tx.connection.execute(query).fetchall()
        for kind, owner_id in owners:
            mentions.reread(tx.passages, RecordKind(kind), owner_id)

    engine.write(ANN, work)
    assert not whole(engine)["mentions"]
    graph.indexer.catch_up()


class FillingMachine(RuleBasedStateMachine):
    messages = Bundle("messages")
    memories = Bundle("memories")

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        settings = Settings(data_dir=Path(self.folder.name))
        self.engine = MemoryEngine.open(settings, FakeEmbedder())
        self.graph = KnowledgeServices.open(self.engine)
        self.conversations = Conversations(self.engine)
        self.removals = Removals(self.engine, on_jobs_gone=lambda: None)
        self.removals.start()

    @rule(target=messages, text=TEXTS, at=WHEN, role=st.sampled_from(MessageRole), session=st.sampled_from("abcd"))
    def say(self, text: str, at: datetime, role: MessageRole, session: str) -> str:
        draft = MessageDraft(role, text, created_at=at, session_id=session, user="cleo")
        return self.conversations.add(ANN, [draft])[0].uid

    @rule(target=memories, text=TEXTS, at=st.none() | WHEN)
    def remember(self, text: str, at: datetime | None) -> int:
        added = self.engine.add(ANN, MemoryDraft(text, "talk", document_at=at))
        assert added.id is not None
        return added.id

    @rule(uid=messages, text=TEXTS)
    def edit(self, uid: str, text: str) -> None:
        with suppress(MessageNotFound):
            self.conversations.edit(ANN, uid, content=text)

    @rule(uid=consumes(messages))
    def forget_message(self, uid: str) -> None:
        with suppress(MessageNotFound):
            self.removals.remove(ANN, Chooses.MESSAGE, uid)

    @rule(session=st.sampled_from("abcd"))
    def forget_session(self, session: str) -> None:
        with suppress(SessionNotFound, AgentNotFound):
            self.removals.remove(ANN, Chooses.SESSION, session)

    @rule(memory=memories, text=st.none() | TEXTS, archived=st.none() | st.booleans(), at=st.none() | WHEN)
    def patch(self, memory: int, text: str | None, archived: bool | None, at: datetime | None) -> None:
        patch = MemoryPatch(text=text, archived=archived, document_at=at)
        if patch != MemoryPatch():
            self.engine.update(ANN, memory, patch)

    @rule(memory=consumes(memories))
    def forget_memory(self, memory: int) -> None:
        self.engine.delete(ANN, memory, force=True)

    @rule(about=st.sampled_from(["alice", "lisbon", "camera"]), alias_of=st.none() | st.just("bob lee"))
    def claim(self, about: str, alias_of: str | None) -> None:
        def work(tx: Transaction) -> None:
            ids = mentions.known_keys(tx.connection, tx.namespace_id, [about, "bob lee"])
            if about in ids and (alias_of is None or alias_of in ids):
                kind = ClaimKind.DESCRIPTION if alias_of is None else ClaimKind.ALIAS
                other = None if alias_of is None else ids[alias_of]
                draft = ClaimDraft(kind, ids[about], "as somebody says", ClaimedBy.CALLER, other)
                claims.insert(tx.connection, tx.namespace_id, draft, tx.now)

        self.engine.write(ANN, work)

    @rule()
    def fill(self) -> None:
        self.graph.indexer.catch_up()

    @invariant()
    def agrees(self) -> None:
        assert list(self.engine.check()) == []

    def teardown(self) -> None:
        self.graph.indexer.catch_up()
        filled = whole(self.engine)
        read_anew(self.engine, self.graph)
        assert whole(self.engine) == filled
        assert list(self.engine.check()) == []
        self.removals.close()
        self.engine.close()
        self.folder.cleanup()


def test_the_graph_always_equals_a_rebuild() -> None:
    run_state_machine_as_test(
        FillingMachine,
        settings=hypothesis_settings(max_examples=sampled(15, 40), stateful_step_count=20, deadline=None),
    )


def test_spoken_names_are_concepts_and_recalled_ones_are_not(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    say(engine, "My name is Alice")
    say(engine, "<recalled_memory>\nGreta lives in Oslo\n</recalled_memory>\nHi")
    say(engine, "You are Zelda, a helpful assistant", MessageRole.SYSTEM)
    graph.indexer.catch_up()
    assert "alice" in keys_of(engine)
    assert not keys_of(engine) & {"greta", "oslo", "zelda"}


def test_a_concept_is_deleted_with_its_last_mention(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    first, second = say(engine, "I met Alice"), say(engine, "I met Alice and Boris")
    graph.indexer.catch_up()
    removals = Removals(engine, on_jobs_gone=lambda: None)
    removals.start()
    removed = removals.remove(ANN, Chooses.MESSAGE, second)
    assert (removed.mentions, removed.concepts) == (2, 1)
    assert keys_of(engine) == {"alice"}
    Conversations(engine).edit(ANN, first, content="I met nobody")
    assert keys_of(engine) == set()
    removals.close()


def test_claims_survive_an_edit_that_still_mentions_the_concept(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    uid = say(engine, "I met Alice")
    graph.indexer.catch_up()

    def state(tx: Transaction) -> None:
        [alice] = mentions.known_keys(tx.connection, tx.namespace_id, ["alice"]).values()
        draft = ClaimDraft(ClaimKind.DESCRIPTION, alice, "a friend", ClaimedBy.CALLER)
        claims.insert(tx.connection, tx.namespace_id, draft, tx.now)

    engine.write(ANN, state)
    Conversations(engine).edit(ANN, uid, content="Yesterday I met Alice")
    graph.indexer.catch_up()
    assert whole(engine)["claims"] == [("alice", "description", "a friend", None)]
    Conversations(engine).edit(ANN, uid, content="Yesterday I met nobody")
    graph.indexer.catch_up()
    assert whole(engine)["claims"] == whole(engine)["concepts"] == []


def test_two_spellings_are_one_concept_while_both_are_mentioned(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    uid = say(engine, "I like the pottery colour palette")
    say(engine, "We chose another pottery color palette")
    graph.indexer.catch_up()
    assert ("pottery colour palette", 1, "pottery color palette") in whole(engine)["concepts"]
    shown = graph.concepts.details(ANN, "pottery colour palette").concept
    assert (shown.key, shown.owners) == ("pottery color palette", 2)
    Conversations(engine).edit(ANN, uid, content="I like it")
    graph.indexer.catch_up()
    assert whole(engine)["concepts"] == [("pottery color palette", 1, None)]


def test_spellings_are_matched_again_after_a_change_of_the_rules(
    engine: MemoryEngine, graph: KnowledgeServices
) -> None:
    say(engine, "I like the pottery colour palette")
    say(engine, "We chose another pottery color palette")
    graph.indexer.catch_up()
    filled = whole(engine)

    def as_it_was(tx: Transaction) -> None:
        tx.connection.execute("DELETE FROM near_concepts")
        tx.connection.execute("UPDATE concepts SET same_as = NULL")
        tx.connection.execute("UPDATE meta SET value = '3' WHERE key = 'graph_rules'")

    engine.write(ANN, as_it_was)
    graph.indexer.catch_up()
    assert whole(engine) == filled


def test_memories_are_indexed_when_their_namespace_becomes_an_agent(
    engine: MemoryEngine, graph: KnowledgeServices
) -> None:
    engine.add(ANN, MemoryDraft("We met Boris in Lisbon", "talk"))
    graph.indexer.catch_up()
    assert keys_of(engine) == set()
    say(engine, "hello")
    graph.indexer.catch_up()
    assert {"boris", "lisbon"} <= keys_of(engine)


def test_a_check_reports_mentions_that_a_rebuild_would_not_make(engine: MemoryEngine, graph: KnowledgeServices) -> None:
    say(engine, "I met Alice", created_at=datetime.now(UTC) - timedelta(days=1))
    graph.indexer.catch_up()

    def damage(tx: Transaction) -> None:
        tx.connection.execute("UPDATE mentions SET form = 'Alicia'")
        tx.connection.execute("UPDATE concept_forms SET form = 'Alicia'")

    engine.write(ANN, damage)
    assert any("mentions something else" in problem for problem in engine.check())
    read_anew(engine, graph)


def test_dates_of_former_rules_are_readable_and_go_when_their_texts_are_read_again(
    engine: MemoryEngine, graph: KnowledgeServices
) -> None:
    say(engine, "I met Alice")
    graph.indexer.catch_up()

    def as_it_was(tx: Transaction) -> None:
        tx.connection.execute("UPDATE concepts SET key = '15 km'")
        tx.connection.execute("UPDATE mentions SET form = '15 km', concept_kind = 'quantity'")
        tx.connection.execute("UPDATE concept_forms SET form = '15 km', kind = 'quantity'")
        tx.connection.execute("UPDATE meta SET value = '3' WHERE key = 'graph_rules'")

    engine.write(ANN, as_it_was)
    [former], _ = graph.concepts.page(ANN, offset=0, limit=10)
    assert (former.name, former.kind) == ("15 km", "phrase")
    graph.indexer.catch_up()
    assert keys_of(engine) == {"alice"}


def test_concepts_stay_consistent_after_an_interrupted_run(settings: Settings) -> None:
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        graph = KnowledgeServices.open(engine)
        for number in range(100):
            say(engine, f"I met Alice in Town{chr(97 + number % 26)} and Boris")
        graph.start()
        graph.close()
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        graph = KnowledgeServices.open(engine)
        assert list(engine.check()) == []
        graph.indexer.catch_up()
        assert list(engine.check()) == []
        filled = whole(engine)
        read_anew(engine, graph)
        assert whole(engine) == filled
