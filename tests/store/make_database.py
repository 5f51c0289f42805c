"""Writes `databases/v<N>.db`, a database of this release, for the migration tests of later releases.

Run it once when a migration is added, before the release, and commit the file:

    python -m tests.store.make_database
"""

from __future__ import annotations

import shutil
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from souvenir.conversations.messages import Conversations
from souvenir.conversations.sessions import Sessions
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, MemoryPatch, MessageRole, Scope
from souvenir.knowledge.services import KnowledgeServices
from souvenir.memories.engine import MemoryEngine
from souvenir.store.idempotency import Once
from souvenir.store.messages.messages import MessageDraft
from souvenir.store.sqlite.schema import SCHEMA_VERSION
from tests.fake_embedder import FakeEmbedder

DATABASES = Path(__file__).parent / "databases"
DOCUMENT_AT = datetime(2023, 5, 8, 9, 30, tzinfo=UTC)
LONG_TEXT = " ".join(f"Sentence {number} of a long report." for number in range(60))


def fill(engine: MemoryEngine) -> None:
    """Store examples of everything in the first release; later versions append to them."""
    default, ann = Scope(actor="maker"), Scope("ann", "maker")
    first = engine.add(default, MemoryDraft("Ann plays the violin", "talk/ann", {"lang": "en", "n": 1}, key="hobby"))
    assert first.id is not None
    engine.supersede(default, first.id, text="Ann plays the viola")
    engine.add_batch(default, [MemoryDraft(LONG_TEXT, "reports"), MemoryDraft("東京都 café", "talk", pinned=True)])
    gone = engine.add(default, MemoryDraft("a forgotten secret", "talk"))
    assert gone.id is not None
    engine.delete(default, gone.id)
    other = engine.add(ann, MemoryDraft("Ben bakes bread", "talk/ben", document_at=DOCUMENT_AT))
    assert other.id is not None
    engine.update(ann, other.id, MemoryPatch(archived=True))
    talk(engine, ann)
    split(engine, ann)
    KnowledgeServices.open(engine).indexer.catch_up()
    # One is still to be read.
    engine.add(ann, MemoryDraft("Ann met Dora in Lisbon", "talk"))


def split(engine: MemoryEngine, agent: Scope) -> None:
    """Store facts and tags, from version 6 on."""
    facts = ("Ann likes tea", "Ben likes coffee")
    draft = MemoryDraft("Ann likes tea and Ben coffee", "talk/taste", tags=("Taste", "tea"), facts=facts)
    stored = engine.add(agent, draft)
    assert stored.id is not None
    engine.update(agent, stored.id, MemoryPatch(facts=("Ann likes tea", "Ben likes it black")))


def talk(engine: MemoryEngine, agent: Scope) -> None:
    """Store conversations, from version 3 on."""
    conversations, sessions = Conversations(engine), Sessions(engine)
    user, assistant = MessageRole.USER, MessageRole.ASSISTANT
    sessions.start(agent, "first", user="cleo", title="Colours", metadata={"n": 1})
    conversations.add(
        agent,
        [
            MessageDraft(user, "I love blue", {"lang": "en"}, "first", speaker="Cleo", created_at=DOCUMENT_AT),
            MessageDraft(assistant, LONG_TEXT, session_id="first"),
            MessageDraft(user, "and nobody named a session", user="dora", created_at=DOCUMENT_AT),
        ],
        once=Once.of("add_messages", "a key", {"n": 3}),
    )
    [wrong] = conversations.add(agent, [MessageDraft(user, "it rains", session_id="first")])
    conversations.edit(agent, wrong.uid, content="it snows")
    sessions.end(agent, "first")
    conversations.append(agent, "second", [MessageDraft(user, "not indexed yet")])


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        settings = Settings(data_dir=Path(folder))
        engine = MemoryEngine.open(settings, FakeEmbedder())
        fill(engine)
        engine.close()
        DATABASES.mkdir(exist_ok=True)
        print(shutil.copyfile(settings.database_path, DATABASES / f"v{SCHEMA_VERSION}.db"))
