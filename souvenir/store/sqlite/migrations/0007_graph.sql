-- What messages and memories mention, of agents alone. `key` is the normal form, and the text of the concept's passage.
-- `owners` counts the messages and memories that mention it. `same_as` is the concept that it is another spelling of.
CREATE TABLE concepts (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    key          TEXT NOT NULL,
    owners       INTEGER NOT NULL,
    same_as      INTEGER REFERENCES concepts (id) ON DELETE SET NULL,
    UNIQUE (namespace_id, key)
) STRICT;
CREATE INDEX concepts_by_use ON concepts (namespace_id, owners);
CREATE INDEX concepts_by_same ON concepts (same_as) WHERE same_as IS NOT NULL;

-- How a concept is written, and what it is taken for there.
CREATE TABLE concept_forms (
    concept_id INTEGER NOT NULL REFERENCES concepts (id) ON DELETE CASCADE,
    form       TEXT NOT NULL,
    kind       TEXT NOT NULL,
    owners     INTEGER NOT NULL,
    PRIMARY KEY (concept_id, form, kind)
) STRICT, WITHOUT ROWID;

-- `at` is when the message was said, or what the memory says occurred.
CREATE TABLE mentions (
    kind         TEXT NOT NULL CHECK (kind IN ('message', 'memory')),
    owner_id     INTEGER NOT NULL,
    concept_id   INTEGER NOT NULL REFERENCES concepts (id) ON DELETE CASCADE,
    form         TEXT NOT NULL,
    concept_kind TEXT NOT NULL,
    at           INTEGER NOT NULL,
    PRIMARY KEY (kind, owner_id, concept_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX mentions_by_concept ON mentions (concept_id, at);

-- How many messages and memories of a month mention both; each pair stands twice. `month` is 12 * year + month - 1.
CREATE TABLE neighbours (
    concept_id INTEGER NOT NULL REFERENCES concepts (id) ON DELETE CASCADE,
    other_id   INTEGER NOT NULL,
    month      INTEGER NOT NULL,
    owners     INTEGER NOT NULL,
    PRIMARY KEY (concept_id, other_id, month)
) STRICT, WITHOUT ROWID;

-- Concepts whose names are so near by meaning that one may be a spelling of the other; each pair stands twice.
CREATE TABLE near_concepts (
    concept_id INTEGER NOT NULL REFERENCES concepts (id) ON DELETE CASCADE,
    other_id   INTEGER NOT NULL REFERENCES concepts (id) ON DELETE CASCADE,
    similarity REAL NOT NULL,
    PRIMARY KEY (concept_id, other_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX near_concepts_by_other ON near_concepts (other_id);

-- `owners`: how many messages and memories of an agent mention anything.
CREATE TABLE graphs (
    namespace_id INTEGER PRIMARY KEY REFERENCES namespaces (id) ON DELETE CASCADE,
    owners       INTEGER NOT NULL
) STRICT;

-- Messages and memories whose mentions are still to be found, oldest first, and concepts whose near ones are.
CREATE TABLE unread (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    kind         TEXT NOT NULL CHECK (kind IN ('message', 'memory')),
    owner_id     INTEGER NOT NULL,
    UNIQUE (kind, owner_id)
) STRICT;
CREATE INDEX unread_by_namespace ON unread (namespace_id, id);
CREATE TABLE unmatched (
    concept_id   INTEGER PRIMARY KEY REFERENCES concepts (id) ON DELETE CASCADE,
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE
) STRICT;
CREATE INDEX unmatched_by_namespace ON unmatched (namespace_id);

-- What somebody says of concepts, beside what is read. A model's claim rests on a message, and goes with it.
CREATE TABLE claims (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    kind         TEXT NOT NULL CHECK (kind IN ('name', 'description', 'alias', 'kind', 'relation')),
    concept_id   INTEGER NOT NULL REFERENCES concepts (id) ON DELETE CASCADE,
    other_id     INTEGER REFERENCES concepts (id) ON DELETE CASCADE,
    text         TEXT NOT NULL,
    confidence   REAL NOT NULL CHECK (confidence BETWEEN 0 AND 1),
    made_by      TEXT NOT NULL CHECK (made_by IN ('caller', 'model')),
    message_id   INTEGER REFERENCES messages (id) ON DELETE CASCADE,
    job_id       TEXT,
    created_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX claims_by_concept ON claims (concept_id, kind);
CREATE INDEX claims_by_other ON claims (other_id) WHERE other_id IS NOT NULL;
CREATE INDEX claims_by_message ON claims (message_id) WHERE message_id IS NOT NULL;
CREATE INDEX claims_by_job ON claims (job_id) WHERE job_id IS NOT NULL;
CREATE INDEX claims_by_namespace ON claims (namespace_id);

-- Messages that a model has read for what it may claim, each as it is now.
CREATE TABLE described (
    message_id   INTEGER PRIMARY KEY REFERENCES messages (id) ON DELETE CASCADE,
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    job_id       TEXT NOT NULL
) STRICT;
CREATE INDEX described_by_job ON described (job_id);
CREATE INDEX described_by_namespace ON described (namespace_id);

-- Concepts that somebody deleted, by the SHA-256 of their keys: they do not come back.
CREATE TABLE hidden_concepts (
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    key_hash     TEXT NOT NULL,
    PRIMARY KEY (namespace_id, key_hash)
) STRICT, WITHOUT ROWID;

-- What sessions are about. A topic that nobody named has no name of its own: its best terms are its name.
CREATE TABLE topics (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    name         TEXT,
    summary      TEXT,
    named_by     TEXT CHECK (named_by IN ('caller', 'model')),
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX topics_by_namespace ON topics (namespace_id);
CREATE TABLE topic_concepts (
    topic_id   INTEGER NOT NULL REFERENCES topics (id) ON DELETE CASCADE,
    concept_id INTEGER NOT NULL REFERENCES concepts (id) ON DELETE CASCADE,
    weight     REAL NOT NULL,
    PRIMARY KEY (topic_id, concept_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX topic_concepts_by_concept ON topic_concepts (concept_id);
CREATE TABLE session_topics (
    session_id INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    topic_id   INTEGER NOT NULL REFERENCES topics (id) ON DELETE CASCADE,
    relevance  REAL NOT NULL,
    is_primary INTEGER NOT NULL CHECK (is_primary IN (0, 1)),
    PRIMARY KEY (session_id, topic_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX session_topics_by_topic ON session_topics (topic_id);

-- Sessions whose topics are to be found anew. One that changes again has a new `id`.
CREATE TABLE unsorted (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id   INTEGER NOT NULL UNIQUE REFERENCES sessions (id) ON DELETE CASCADE,
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE
) STRICT;
CREATE INDEX unsorted_by_namespace ON unsorted (namespace_id);

-- What an agent's callers may read of it, where it is not all.
ALTER TABLE agents ADD COLUMN access TEXT NOT NULL DEFAULT '{}' CHECK (json_valid(access));

INSERT INTO unread (namespace_id, kind, owner_id)
SELECT m.namespace_id, 'message', m.id FROM messages m JOIN agents a USING (namespace_id) ORDER BY m.id;
INSERT INTO unread (namespace_id, kind, owner_id)
SELECT m.namespace_id, 'memory', m.id FROM memories m JOIN agents a USING (namespace_id) WHERE m.archived = 0 ORDER BY m.id;
