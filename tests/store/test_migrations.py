"""A database of every earlier version opens with the current schema and all of its data."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from souvenir.conversations.message_search import MessageQuery
from souvenir.conversations.messages import Conversations
from souvenir.conversations.sessions import Sessions
from souvenir.core.files import sha256_of
from souvenir.core.settings import Settings
from souvenir.core.types import Filters, MemoryDraft, PassageKind, Scope, SearchQuery
from souvenir.index.analyser import Analyser
from souvenir.knowledge.services import KnowledgeServices
from souvenir.memories.engine import MemoryEngine
from souvenir.store.messages.messages import MessageFilter
from souvenir.store.messages.sessions import SessionFilter
from souvenir.store.sqlite import checksums
from souvenir.store.sqlite.backups import DATABASE_FILE, MANIFEST_FILE
from souvenir.store.sqlite.restore import restore_offline
from souvenir.store.sqlite.schema import MIGRATIONS, SCHEMA_VERSION, migrate, schema_version
from tests.fake_embedder import FakeEmbedder
from tests.reference.agreement import TOLERANCE
from tests.reference.search import ReferenceSearch
from tests.store.make_database import DATABASES, DOCUMENT_AT, LONG_TEXT

VERSIONS = range(1, SCHEMA_VERSION + 1)
WITH_CONVERSATIONS = range(3, SCHEMA_VERSION + 1)


@pytest.fixture(params=VERSIONS)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MemoryEngine]:
    settings = Settings(data_dir=tmp_path)
    shutil.copyfile(DATABASES / f"v{request.param}.db", settings.database_path)
    engine = MemoryEngine.open(settings, FakeEmbedder())
    yield engine
    engine.close()


def layout(connection: apsw.Connection) -> list[object]:
    return list(connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY type, name"))


def test_migrations_are_numbered_without_gaps():
    assert sorted(MIGRATIONS) == list(VERSIONS)


def test_a_database_of_every_version_is_stored():
    assert sorted(path.name for path in DATABASES.glob("*.db")) == sorted(f"v{version}.db" for version in VERSIONS)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_migrated_database_has_the_layout_of_a_new_one(version: int, tmp_path: Path):
    shutil.copyfile(DATABASES / f"v{version}.db", tmp_path / "old.db")
    old, new = (apsw.Connection(str(tmp_path / name)) for name in ("old.db", "new.db"))
    assert schema_version(old) == version
    for connection in (old, new):
        migrate(connection)
        assert schema_version(connection) == SCHEMA_VERSION
    assert layout(old) == layout(new)
    old.close()
    new.close()


def test_migrations_keep_all_memories(engine: MemoryEngine):
    stored = {memory.text: memory for memory in engine.page(Scope(), offset=0, limit=100).memories}
    assert list(stored)[:4] == ["Ann plays the violin", "Ann plays the viola", LONG_TEXT, "東京都 café"]
    old, new = stored["Ann plays the violin"], stored["Ann plays the viola"]
    assert (old.archived, old.superseded_by) == (True, new.id)
    assert (new.key, new.source, new.metadata) == ("hobby", "talk/ann", {"lang": "en", "n": 1})
    assert new.previous_text == old.text
    assert stored["東京都 café"].pinned
    [other, *_] = engine.page(Scope("ann"), offset=0, limit=100).memories
    assert (other.text, other.document_at, other.archived) == ("Ben bakes bread", DOCUMENT_AT, True)


def test_migrated_memories_can_be_found_and_changed(engine: MemoryEngine):
    found = engine.search(Scope(), SearchQuery("who plays the viola", top_k=1))
    assert [hit.memory.text for hit in found.hits] == ["Ann plays the viola"]
    found = engine.search(Scope("ann"), SearchQuery("bread", 1, filters=Filters(include_archived=True)))
    assert [hit.memory.text for hit in found.hits] == ["Ben bakes bread"]
    before = [memory.id for memory in engine.page(Scope(), offset=0, limit=100).memories]
    added = engine.add(Scope(), MemoryDraft("a new one", "talk"))
    assert added.id is not None
    assert added.id > max(before)
    engine.delete(Scope(), before[0])
    assert list(engine.check()) == []


@pytest.mark.parametrize("version", [version for version in VERSIONS if version >= 6])
def test_migrations_keep_all_facts_and_tags(version: int, tmp_path: Path):
    settings = Settings(data_dir=tmp_path)
    shutil.copyfile(DATABASES / f"v{version}.db", settings.database_path)
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        [hit] = engine.search(Scope("ann"), SearchQuery("who likes it black", 1)).hits
        assert hit.memory.tags == ("Taste", "tea")
        assert [fact.text for fact in hit.memory.facts] == ["Ann likes tea", "Ben likes it black"]
        assert hit.facts[0].fact.text == "Ben likes it black"


@pytest.mark.parametrize("version", WITH_CONVERSATIONS)
def test_mentions_are_extracted_from_migrated_messages(version: int, tmp_path: Path):
    settings = Settings(data_dir=tmp_path)
    shutil.copyfile(DATABASES / f"v{version}.db", settings.database_path)
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        KnowledgeServices.open(engine).indexer.catch_up()
        with engine.namespace(Scope("ann")) as (connection, namespace):
            assert namespace is not None
            assert connection.execute("SELECT count(*) FROM unread").get == 0
            messages = connection.execute("SELECT count(*) FROM mentions WHERE kind = 'message'").get
        assert messages > 0
        assert list(engine.check()) == []


def test_entities_of_earlier_releases_become_concepts(tmp_path: Path):
    settings = Settings(data_dir=tmp_path)
    shutil.copyfile(DATABASES / "v15.db", settings.database_path)
    with closing(apsw.Connection(str(settings.database_path))) as connection:
        checksums.register(connection)
        of_ann = "namespace_id = (SELECT id FROM namespaces WHERE name = 'ann') AND archived = 0"
        connection.execute(
            "UPDATE memories SET source = 'proj/entities', key = 'tea_drinker', metadata = ? "
            f"WHERE id = (SELECT min(id) FROM memories WHERE {of_ann})",
            ('{"entity_type": "role"}',),
        )
        assert connection.changes() == 1
        connection.execute("DELETE FROM unread")
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        services = KnowledgeServices.open(engine)
        with engine.namespace(Scope()) as (connection, _):
            assert connection.execute("SELECT count(*) FROM unread").get == 1
        services.indexer.catch_up()
        assert services.concepts.details(Scope("ann"), "tea drinker").concept.kind == "role"


@pytest.mark.parametrize("version", [version for version in VERSIONS if 7 <= version < 16])
def test_migrated_topics_continue(version: int, tmp_path: Path):
    settings = Settings(data_dir=tmp_path)
    shutil.copyfile(DATABASES / f"v{version}.db", settings.database_path)
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        graph = KnowledgeServices.open(engine)
        with engine.namespace(Scope("ann")) as (connection, _):
            query = "SELECT min(m.uid) FROM messages m JOIN topic_segments t ON t.session_id = m.session_id"
            uid = str(connection.execute(query).get)
        # What it was about then is no subject any more.
        Conversations(engine).edit(Scope("ann"), uid, content="My violin has a new bow")
        graph.indexer.catch_up()
        topic = graph.topics.details(Scope("ann"), 1).named
        assert (topic.topic.sessions, topic.summary) == (1, "My violin has a new bow")


def test_concepts_of_former_releases_lose_their_passages(tmp_path: Path):
    settings = Settings(data_dir=tmp_path)
    shutil.copyfile(DATABASES / "v16.db", settings.database_path)
    passages = "SELECT count(*) FROM passages WHERE kind = 'concept'"
    with closing(apsw.Connection(str(settings.database_path))) as before:
        count = before.execute(passages).get
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        with engine.namespace(Scope()) as (connection, _):
            assert count > 0
            assert connection.execute(passages).get == 0
            vectors = "SELECT count(*) FROM vectors WHERE passage_id NOT IN (SELECT id FROM passages)"
            assert connection.execute(vectors).get == 0
        assert not engine.check()


@pytest.mark.parametrize("version", WITH_CONVERSATIONS)
def test_migrated_messages_are_scored_like_new_ones(version: int, tmp_path: Path):
    """Except for vectors: version 3 embedded more of long answers than their start."""
    agent = Scope("ann")
    settings = Settings(data_dir=tmp_path)
    shutil.copyfile(DATABASES / f"v{version}.db", settings.database_path)
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        messages, _ = Conversations(engine).page(agent, MessageFilter())
        reference = ReferenceSearch(FakeEmbedder(), Analyser())
        passages = reference.passages.of_messages(messages)
        for text in ("What does Cleo love, blue?", "Sentence 55", "Did it snow after the report?"):
            query = SearchQuery(text, 50, now=DOCUMENT_AT)
            found = engine.recall(agent, PassageKind.MESSAGE, query)
            assert found is not None
            expected = {hit.owner_id: dict(hit.parts) for hit in reference.rank(passages, query, DOCUMENT_AT)}
            assert {one.owner_id for one in found.ranked} == expected.keys()
            for one in found.ranked:
                for name, part in expected[one.owner_id].items():
                    assert name == "dense" or one.parts.get(name, 0.0) == pytest.approx(part, abs=TOLERANCE), name


@pytest.mark.parametrize("version", WITH_CONVERSATIONS)
def test_migrated_conversations_can_be_continued(version: int, tmp_path: Path):
    agent = Scope("ann")
    settings = Settings(data_dir=tmp_path)
    shutil.copyfile(DATABASES / f"v{version}.db", settings.database_path)
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        conversations, sessions = Conversations(engine), Sessions(engine)
        first, _ = conversations.of_session(agent, "first")
        assert [(one.content, one.user, one.speaker) for one in first] == [
            ("I love blue", "cleo", "Cleo"),
            (LONG_TEXT, "cleo", None),
            ("it snows", "cleo", None),
        ]
        assert (first[0].created_at, first[0].metadata) == (DOCUMENT_AT, {"lang": "en"})
        assert [one.name for one in sessions.page(agent, SessionFilter(open=True))[0]].count("second") == 1
        assert sessions.get(agent, "first").title == "Colours"
        sessions.end(agent, "second")
        for text in ("I love blue", "it snows", "not indexed yet"):
            [hit] = conversations.search(agent, MessageQuery(text, limit=1)).hits
            assert hit.message.content == text
        assert list(engine.check()) == []


@pytest.mark.parametrize("offline", [False, True])
def test_restoring_a_backup_without_facts_reuses_no_fact_id(tmp_path: Path, offline: bool):
    settings = Settings(data_dir=tmp_path)
    draft = MemoryDraft("Ann sings", "talk", facts=("Ann has a voice", "she uses it"), tags=("music",))
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        name = engine.back_up(reason="manual").name
        former = engine.add(Scope(), draft).id
        assert former is not None
        last = max(fact.id for fact in engine.get(Scope(), [former])[former].facts)
        folder = settings.backup_dir / name
        shutil.copyfile(DATABASES / "v5.db", folder / DATABASE_FILE)
        manifest = json.loads((folder / MANIFEST_FILE).read_bytes())
        manifest["sha256"] = sha256_of(folder / DATABASE_FILE)
        (folder / MANIFEST_FILE).write_text(json.dumps(manifest))
        if not offline:
            engine.restore(name)
    if offline:
        restore_offline(settings, name)
    with closing(MemoryEngine.open(settings, FakeEmbedder())) as engine:
        assert all(not one.facts and not one.tags for one in engine.page(Scope(), offset=0, limit=100).memories)
        again = engine.add(Scope(), draft).id
        assert again is not None
        memory = engine.get(Scope(), [again])[again]
        assert min(fact.id for fact in memory.facts) > last
        assert engine.search(Scope(), SearchQuery("who has a voice")).hits[0].facts[0].fact == memory.facts[0]
        assert list(engine.check()) == []
