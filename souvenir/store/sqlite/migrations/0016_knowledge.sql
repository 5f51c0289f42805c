-- Claims that an entity of the knowledge graph states: `memory_id` is the entity that states it, and `other_memory_id`
-- the entity that its relation leads to. They are derived from these memories, and go with them.
ALTER TABLE claims ADD COLUMN memory_id INTEGER REFERENCES memories (id) ON DELETE CASCADE;
ALTER TABLE claims ADD COLUMN other_memory_id INTEGER REFERENCES memories (id) ON DELETE CASCADE;
CREATE INDEX claims_by_memory ON claims (memory_id) WHERE memory_id IS NOT NULL;
CREATE INDEX claims_by_other_memory ON claims (other_memory_id) WHERE other_memory_id IS NOT NULL;

-- The checksums of claims cover both; one of nulls is as before.
DROP TRIGGER claims_checksum_added;
DROP TRIGGER claims_checksum_changed;
DROP TRIGGER claims_checksum_deleted;
CREATE TRIGGER claims_checksum_added AFTER INSERT ON claims BEGIN
    INSERT OR REPLACE INTO claims_checksums VALUES (NEW.id, row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.kind, NEW.concept_id, NEW.other_id, NEW.text, CAST(round(NEW.confidence * 1000000) AS INTEGER), NEW.made_by, NEW.message_id, NEW.job_id, NEW.created_at, NEW.memory_id, NEW.other_memory_id) AS BLOB)));
END;
CREATE TRIGGER claims_checksum_changed AFTER UPDATE OF id, namespace_id, kind, concept_id, other_id, text, confidence, made_by, message_id, job_id, created_at, memory_id, other_memory_id ON claims BEGIN
    UPDATE OR REPLACE claims_checksums SET id = NEW.id, checksum = checksum
        + row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.kind, NEW.concept_id, NEW.other_id, NEW.text, CAST(round(NEW.confidence * 1000000) AS INTEGER), NEW.made_by, NEW.message_id, NEW.job_id, NEW.created_at, NEW.memory_id, NEW.other_memory_id) AS BLOB))
        - row_checksum(CAST(concat_ws(x'1f', OLD.id, OLD.namespace_id, OLD.kind, OLD.concept_id, OLD.other_id, OLD.text, CAST(round(OLD.confidence * 1000000) AS INTEGER), OLD.made_by, OLD.message_id, OLD.job_id, OLD.created_at, OLD.memory_id, OLD.other_memory_id) AS BLOB))
    WHERE id = OLD.id;
END;
CREATE TRIGGER claims_checksum_deleted AFTER DELETE ON claims BEGIN
    DELETE FROM claims_checksums WHERE id = OLD.id;
END;

-- Entities of earlier releases are indexed again, with their names, types and relations.
INSERT INTO unread (namespace_id, kind, owner_id)
SELECT m.namespace_id, 'memory', m.id FROM memories m JOIN agents a ON a.namespace_id = m.namespace_id
WHERE m.archived = 0 AND m.key IS NOT NULL AND (m.source = 'entities' OR substr(m.source, length(m.source) - 8) = '/entities')
AND NOT EXISTS (SELECT 1 FROM unread u WHERE u.kind = 'memory' AND u.owner_id = m.id) ORDER BY m.id;

-- Runs of messages of a session on one subject, by their positions. A session had one topic, and others that are similar.
CREATE TABLE topic_segments (
    session_id     INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    first_position INTEGER NOT NULL,
    last_position  INTEGER NOT NULL,
    topic_id       INTEGER NOT NULL REFERENCES topics (id) ON DELETE CASCADE,
    messages       INTEGER NOT NULL,
    first_at       INTEGER NOT NULL,
    last_at        INTEGER NOT NULL,
    relevance      REAL NOT NULL,
    PRIMARY KEY (session_id, first_position)
) STRICT, WITHOUT ROWID;
CREATE INDEX topic_segments_by_topic ON topic_segments (topic_id, session_id, messages, first_at, last_at);
INSERT INTO topic_segments
SELECT t.session_id, min(m.position), max(m.position), min(t.topic_id), count(*), min(m.created_at), max(m.created_at),
    min(t.relevance)
FROM session_topics t JOIN messages m ON m.session_id = t.session_id WHERE t.is_primary = 1 GROUP BY t.session_id;
DROP TABLE session_topics;

-- The summary of a topic to which none was stated: places of sentences, in characters. An edited message has none.
CREATE TABLE topic_sentences (
    topic_id   INTEGER NOT NULL REFERENCES topics (id) ON DELETE CASCADE,
    ordinal    INTEGER NOT NULL,
    message_id INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    start      INTEGER NOT NULL,
    length     INTEGER NOT NULL,
    PRIMARY KEY (topic_id, ordinal)
) STRICT, WITHOUT ROWID;
CREATE INDEX topic_sentences_by_message ON topic_sentences (message_id);
CREATE TRIGGER topic_sentence_edited AFTER UPDATE OF content ON messages BEGIN
    DELETE FROM topic_sentences WHERE message_id = NEW.id;
END;

DELETE FROM unsorted;
INSERT INTO unsorted (session_id, namespace_id)
SELECT s.id, s.namespace_id FROM sessions s JOIN agents a USING (namespace_id) ORDER BY s.id;

-- Statements of messages that insights report: promises, appointments, changes and the like. Derived from the messages,
-- like mentions. `due` is the day of a promise or the new day of a change, `replaced` the day that a change replaces,
-- both as the microsecond at which it begins in UTC. `at` is when it was said.
CREATE TABLE statements (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    message_id   INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    kind         TEXT NOT NULL,
    sentence     TEXT NOT NULL,
    terms        TEXT NOT NULL,
    attribute    TEXT,
    value        TEXT,
    due          INTEGER,
    replaced     INTEGER,
    at           INTEGER NOT NULL
) STRICT;
CREATE INDEX statements_by_message ON statements (message_id);
CREATE INDEX statements_by_time ON statements (namespace_id, kind, at);
CREATE INDEX statements_by_due ON statements (namespace_id, due) WHERE due IS NOT NULL;

-- The sentence of a mention that defines its concept, where there is one. A higher quality is better; `role` is what the
-- concept is by it, such as "my boss".
CREATE TABLE definitions (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    kind         TEXT NOT NULL CHECK (kind IN ('message', 'memory')),
    owner_id     INTEGER NOT NULL,
    concept_id   INTEGER NOT NULL REFERENCES concepts (id) ON DELETE CASCADE,
    sentence     TEXT NOT NULL,
    quality      INTEGER NOT NULL,
    role         TEXT,
    at           INTEGER NOT NULL,
    UNIQUE (kind, owner_id, concept_id)
) STRICT;
CREATE INDEX definitions_by_concept ON definitions (concept_id, quality, at);
CREATE INDEX definitions_by_time ON definitions (namespace_id, at) WHERE role IS NOT NULL;

-- Names and summaries that a language model gave to topics. Each is supported by a message, and was written from the
-- messages between two positions of its session: it goes with any of these.
CREATE TABLE topic_claims (
    id             INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace_id   INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    topic_id       INTEGER NOT NULL REFERENCES topics (id) ON DELETE CASCADE,
    kind           TEXT NOT NULL CHECK (kind IN ('topic_name', 'topic_summary')),
    text           TEXT NOT NULL,
    message_id     INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    session_id     INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    first_position INTEGER NOT NULL,
    last_position  INTEGER NOT NULL,
    job_id         TEXT NOT NULL,
    created_at     INTEGER NOT NULL
) STRICT;
CREATE INDEX topic_claims_by_topic ON topic_claims (topic_id);
CREATE INDEX topic_claims_by_session ON topic_claims (session_id);
CREATE INDEX topic_claims_by_message ON topic_claims (message_id);
CREATE INDEX topic_claims_by_job ON topic_claims (namespace_id, job_id);
CREATE TRIGGER topic_claim_edited AFTER UPDATE OF content ON messages BEGIN
    DELETE FROM topic_claims
    WHERE session_id = NEW.session_id AND NEW.position BETWEEN first_position AND last_position;
END;
CREATE TRIGGER topic_claim_deleted AFTER DELETE ON messages BEGIN
    DELETE FROM topic_claims
    WHERE session_id = OLD.session_id AND OLD.position BETWEEN first_position AND last_position;
END;
CREATE TABLE topic_claims_checksums (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;
INSERT INTO topic_claims_checksums SELECT t.id AS id, row_checksum(CAST(concat_ws(x'1f', t.id, t.namespace_id, t.topic_id, t.kind, t.text, t.message_id, t.session_id, t.first_position, t.last_position, t.job_id, t.created_at) AS BLOB)) AS checksum FROM topic_claims t;
CREATE TRIGGER topic_claims_checksum_added AFTER INSERT ON topic_claims BEGIN
    INSERT OR REPLACE INTO topic_claims_checksums VALUES (NEW.id, row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.topic_id, NEW.kind, NEW.text, NEW.message_id, NEW.session_id, NEW.first_position, NEW.last_position, NEW.job_id, NEW.created_at) AS BLOB)));
END;
CREATE TRIGGER topic_claims_checksum_changed AFTER UPDATE OF id, namespace_id, topic_id, kind, text, message_id, session_id, first_position, last_position, job_id, created_at ON topic_claims BEGIN
    UPDATE OR REPLACE topic_claims_checksums SET id = NEW.id, checksum = checksum
        + row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.topic_id, NEW.kind, NEW.text, NEW.message_id, NEW.session_id, NEW.first_position, NEW.last_position, NEW.job_id, NEW.created_at) AS BLOB))
        - row_checksum(CAST(concat_ws(x'1f', OLD.id, OLD.namespace_id, OLD.topic_id, OLD.kind, OLD.text, OLD.message_id, OLD.session_id, OLD.first_position, OLD.last_position, OLD.job_id, OLD.created_at) AS BLOB))
    WHERE id = OLD.id;
END;
CREATE TRIGGER topic_claims_checksum_deleted AFTER DELETE ON topic_claims BEGIN
    DELETE FROM topic_claims_checksums WHERE id = OLD.id;
END;
