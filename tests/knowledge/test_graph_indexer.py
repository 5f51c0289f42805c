"""The graph is a function of the stored messages, independent of the order of writes, edits and deletes."""

from __future__ import annotations

from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule, run_state_machine_as_test

from souvenir.core.errors import AgentNotFound, MessageNotFound, SessionNotFound
from souvenir.core.settings import Settings
from souvenir.core.types import ClaimedBy, ClaimKind, MemoryDraft, MemoryPatch, MessageRole, RecordKind
from souvenir.knowledge.services import KnowledgeServices
from souvenir.memories.engine import MemoryEngine
from souvenir.memories.removals import Removals
from souvenir.store.graph import claims, mentions
from souvenir.store.graph.claims import ClaimDraft
from souvenir.store.selection import Chooses
from souvenir.store.transaction import Transaction
from tests.fake_embedder import FakeEmbedder
from tests.knowledge.agent import ANN, Agent
from tests.thoroughness import sampled

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


FORMER_RULES = "UPDATE meta SET value = '3' WHERE key = 'graph_rules'"


def whole(ann: Agent) -> dict[str, Any]:
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
    return {name: sorted(ann.rows(query), key=repr) for name, query in queries.items()}


def keys_of(ann: Agent) -> set[str]:
    return {key for (key,) in ann.rows("SELECT key FROM concepts")}


def check_rebuild(ann: Agent) -> None:
    """Forget all mentions and read everything again, the last first: the graph is the same."""
    assert list(ann.engine.check()) == []
    ann.index()
    filled = whole(ann)

    def work(tx: Transaction) -> None:
        query = "SELECT DISTINCT kind, owner_id FROM mentions ORDER BY owner_id DESC"
        owners: list[Any] = tx.connection.execute(query).fetchall()
        for kind, owner_id in owners:
            mentions.reread(tx.connection, tx.namespace_id, RecordKind(kind), owner_id)

    ann.engine.write(ANN, work)
    assert not whole(ann)["mentions"]
    ann.index()
    assert whole(ann) == filled
    assert list(ann.engine.check()) == []


class FillingMachine(RuleBasedStateMachine):
    messages = Bundle("messages")
    memories = Bundle("memories")

    def __init__(self) -> None:
        super().__init__()
        self.folder = TemporaryDirectory()
        settings = Settings(data_dir=Path(self.folder.name))
        self.engine = MemoryEngine.open(settings, FakeEmbedder())
        self.ann = Agent(self.engine, KnowledgeServices.open(self.engine))
        self.removals = Removals(self.engine, on_jobs_gone=lambda: None)
        self.removals.start()

    @rule(target=messages, text=TEXTS, at=WHEN, role=st.sampled_from(MessageRole), session=st.sampled_from("abcd"))
    def say(self, text: str, at: datetime, role: MessageRole, session: str) -> str:
        return self.ann.say(text, at=at, role=role, session=session)[0]

    @rule(target=memories, text=TEXTS, at=st.none() | WHEN)
    def remember(self, text: str, at: datetime | None) -> int:
        added = self.engine.add(ANN, MemoryDraft(text, "talk", document_at=at))
        assert added.id is not None
        return added.id

    @rule(uid=messages, text=TEXTS)
    def edit(self, uid: str, text: str) -> None:
        with suppress(MessageNotFound):
            self.ann.edit(uid, text)

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
        self.ann.index()

    @invariant()
    def agrees(self) -> None:
        assert list(self.engine.check()) == []

    def teardown(self) -> None:
        check_rebuild(self.ann)
        self.removals.close()
        self.engine.close()
        self.folder.cleanup()


def test_the_graph_always_equals_a_rebuild() -> None:
    run_state_machine_as_test(
        FillingMachine,
        settings=hypothesis_settings(max_examples=sampled(15, 40), stateful_step_count=20, deadline=None),
    )


def test_spoken_names_are_concepts_and_recalled_ones_are_not(ann: Agent) -> None:
    ann.say("My name is Alice")
    ann.say("<recalled_memory>\nGreta lives in Oslo\n</recalled_memory>\nHi")
    ann.tell("You are Zelda, a helpful assistant", role=MessageRole.SYSTEM)
    assert "alice" in keys_of(ann)
    assert not keys_of(ann) & {"greta", "oslo", "zelda"}


def test_a_concept_is_deleted_with_its_last_mention(ann: Agent) -> None:
    first, second = ann.tell("I met Alice", "I met Alice and Boris")
    removed = ann.remove(Chooses.MESSAGE, second)
    assert (removed.mentions, removed.concepts) == (2, 1)
    assert keys_of(ann) == {"alice"}
    ann.edit(first, "I met nobody")
    assert keys_of(ann) == set()


def test_claims_survive_an_edit_that_still_mentions_the_concept(ann: Agent) -> None:
    [uid] = ann.tell("I met Alice")
    ann.update(ann.concept("alice"), description="a friend")
    ann.edit(uid, "Yesterday I met Alice")
    ann.index()
    assert whole(ann)["claims"] == [("alice", "description", "a friend", None)]
    ann.edit(uid, "Yesterday I met nobody")
    ann.index()
    assert whole(ann)["claims"] == whole(ann)["concepts"] == []


def test_two_spellings_are_one_concept_while_both_are_mentioned(ann: Agent) -> None:
    [uid] = ann.say("I like the pottery colour palette")
    ann.tell("We chose another pottery color palette")
    assert ("pottery colour palette", 1, "pottery color palette") in whole(ann)["concepts"]
    shown = ann.concept("pottery colour palette")
    assert (shown.key, shown.owners) == ("pottery color palette", 2)
    ann.edit(uid, "I like it")
    ann.index()
    assert whole(ann)["concepts"] == [("pottery color palette", 1, None)]


def test_spellings_are_matched_again_after_a_change_of_the_rules(ann: Agent) -> None:
    ann.say("I like the pottery colour palette")
    ann.tell("We chose another pottery color palette")
    filled = whole(ann)
    ann.execute("DELETE FROM near_concepts", "UPDATE concepts SET same_as = NULL", FORMER_RULES)
    ann.index()
    assert whole(ann) == filled


def test_memories_are_indexed_when_their_namespace_becomes_an_agent(ann: Agent) -> None:
    ann.engine.add(ANN, MemoryDraft("We met Boris in Lisbon", "talk"))
    ann.index()
    assert keys_of(ann) == set()
    ann.tell("hello")
    assert {"boris", "lisbon"} <= keys_of(ann)


def test_a_check_reports_mentions_that_a_rebuild_would_not_make(ann: Agent) -> None:
    ann.tell("I met Alice", at=datetime.now(UTC) - timedelta(days=1))
    ann.execute("UPDATE mentions SET form = 'Alicia'", "UPDATE concept_forms SET form = 'Alicia'")
    assert any("mentions something else" in problem for problem in ann.engine.check())
    ann.execute("UPDATE mentions SET form = 'Alice'", "UPDATE concept_forms SET form = 'Alice'")


def test_dates_of_former_rules_are_readable_and_go_when_their_texts_are_read_again(ann: Agent) -> None:
    ann.tell("I met Alice")
    ann.execute(
        "UPDATE concepts SET key = '15 km'",
        "UPDATE mentions SET form = '15 km', concept_kind = 'quantity'",
        "UPDATE concept_forms SET form = '15 km', kind = 'quantity'",
        FORMER_RULES,
    )
    [former] = ann.listed()
    assert (former.name, former.kind) == ("15 km", "phrase")
    ann.index()
    assert keys_of(ann) == {"alice"}


def test_concepts_stay_consistent_after_an_interrupted_run(settings: Settings) -> None:
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        ann = Agent(engine, KnowledgeServices.open(engine))
        ann.say(*(f"I met Alice in Town{chr(97 + number % 26)} and Boris" for number in range(100)))
        ann.graph.start()
        ann.graph.close()
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        check_rebuild(Agent(engine, KnowledgeServices.open(engine)))
