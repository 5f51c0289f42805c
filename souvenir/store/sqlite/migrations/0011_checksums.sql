-- The indexes of flagged rows do not fail on JSON that was damaged on disk, which must be deleted like any other.
DROP INDEX messages_flagged;
DROP INDEX memories_flagged;
CREATE INDEX messages_flagged ON messages (namespace_id)
WHERE iif(json_valid(metadata), json_extract(metadata, '$.sensitive_topics'), NULL) IS NOT NULL;
CREATE INDEX memories_flagged ON memories (namespace_id)
WHERE iif(json_valid(metadata), json_extract(metadata, '$.sensitive_topics'), NULL) IS NOT NULL;

-- Checksums of rows, kept by triggers: written by `souvenir.store.sqlite.checksums`, which says what is covered.
CREATE TABLE namespaces_checksums (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;
INSERT INTO namespaces_checksums SELECT t.id AS id, row_checksum(CAST(concat_ws(x'1f', t.id, t.name, t.created_at) AS BLOB)) AS checksum FROM namespaces t;
CREATE TRIGGER namespaces_checksum_added AFTER INSERT ON namespaces BEGIN
    INSERT OR REPLACE INTO namespaces_checksums VALUES (NEW.id, row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.name, NEW.created_at) AS BLOB)));
END;
CREATE TRIGGER namespaces_checksum_changed AFTER UPDATE OF id, name, created_at ON namespaces
WHEN (NEW.id, NEW.name, NEW.created_at) IS NOT (OLD.id, OLD.name, OLD.created_at) BEGIN
    UPDATE OR REPLACE namespaces_checksums SET id = NEW.id, checksum = checksum
        + row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.name, NEW.created_at) AS BLOB))
        - row_checksum(CAST(concat_ws(x'1f', OLD.id, OLD.name, OLD.created_at) AS BLOB))
    WHERE id = OLD.id;
END;
CREATE TRIGGER namespaces_checksum_deleted AFTER DELETE ON namespaces BEGIN
    DELETE FROM namespaces_checksums WHERE id = OLD.id;
END;

CREATE TABLE agents_checksums (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;
INSERT INTO agents_checksums SELECT t.namespace_id AS id, row_checksum(CAST(concat_ws(x'1f', t.namespace_id, t.uid, t.metadata, t.policy, t.created_at, t.access) AS BLOB)) AS checksum FROM agents t;
CREATE TRIGGER agents_checksum_added AFTER INSERT ON agents BEGIN
    INSERT OR REPLACE INTO agents_checksums VALUES (NEW.namespace_id, row_checksum(CAST(concat_ws(x'1f', NEW.namespace_id, NEW.uid, NEW.metadata, NEW.policy, NEW.created_at, NEW.access) AS BLOB)));
END;
CREATE TRIGGER agents_checksum_changed AFTER UPDATE OF namespace_id, uid, metadata, policy, created_at, access ON agents BEGIN
    UPDATE OR REPLACE agents_checksums SET id = NEW.namespace_id, checksum = checksum
        + row_checksum(CAST(concat_ws(x'1f', NEW.namespace_id, NEW.uid, NEW.metadata, NEW.policy, NEW.created_at, NEW.access) AS BLOB))
        - row_checksum(CAST(concat_ws(x'1f', OLD.namespace_id, OLD.uid, OLD.metadata, OLD.policy, OLD.created_at, OLD.access) AS BLOB))
    WHERE id = OLD.namespace_id;
END;
CREATE TRIGGER agents_checksum_deleted AFTER DELETE ON agents BEGIN
    DELETE FROM agents_checksums WHERE id = OLD.namespace_id;
END;

CREATE TABLE users_checksums (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;
INSERT INTO users_checksums SELECT t.id AS id, row_checksum(CAST(concat_ws(x'1f', t.id, t.namespace_id, t.name, t.created_at) AS BLOB)) AS checksum FROM users t;
CREATE TRIGGER users_checksum_added AFTER INSERT ON users BEGIN
    INSERT OR REPLACE INTO users_checksums VALUES (NEW.id, row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.name, NEW.created_at) AS BLOB)));
END;
CREATE TRIGGER users_checksum_changed AFTER UPDATE OF id, namespace_id, name, created_at ON users BEGIN
    UPDATE OR REPLACE users_checksums SET id = NEW.id, checksum = checksum
        + row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.name, NEW.created_at) AS BLOB))
        - row_checksum(CAST(concat_ws(x'1f', OLD.id, OLD.namespace_id, OLD.name, OLD.created_at) AS BLOB))
    WHERE id = OLD.id;
END;
CREATE TRIGGER users_checksum_deleted AFTER DELETE ON users BEGIN
    DELETE FROM users_checksums WHERE id = OLD.id;
END;

CREATE TABLE sessions_checksums (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;
INSERT INTO sessions_checksums SELECT t.id AS id, row_checksum(CAST(concat_ws(x'1f', t.id, t.namespace_id, t.name, t.user_id, t.title, t.metadata, t.implicit, t.started_at, t.ended_at) AS BLOB)) AS checksum FROM sessions t;
CREATE TRIGGER sessions_checksum_added AFTER INSERT ON sessions BEGIN
    INSERT OR REPLACE INTO sessions_checksums VALUES (NEW.id, row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.name, NEW.user_id, NEW.title, NEW.metadata, NEW.implicit, NEW.started_at, NEW.ended_at) AS BLOB)));
END;
CREATE TRIGGER sessions_checksum_changed AFTER UPDATE OF id, namespace_id, name, user_id, title, metadata, implicit, started_at, ended_at ON sessions
WHEN (NEW.id, NEW.namespace_id, NEW.name, NEW.user_id, NEW.title, NEW.metadata, NEW.implicit, NEW.started_at, NEW.ended_at) IS NOT (OLD.id, OLD.namespace_id, OLD.name, OLD.user_id, OLD.title, OLD.metadata, OLD.implicit, OLD.started_at, OLD.ended_at) BEGIN
    UPDATE OR REPLACE sessions_checksums SET id = NEW.id, checksum = checksum
        + row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.name, NEW.user_id, NEW.title, NEW.metadata, NEW.implicit, NEW.started_at, NEW.ended_at) AS BLOB))
        - row_checksum(CAST(concat_ws(x'1f', OLD.id, OLD.namespace_id, OLD.name, OLD.user_id, OLD.title, OLD.metadata, OLD.implicit, OLD.started_at, OLD.ended_at) AS BLOB))
    WHERE id = OLD.id;
END;
CREATE TRIGGER sessions_checksum_deleted AFTER DELETE ON sessions BEGIN
    DELETE FROM sessions_checksums WHERE id = OLD.id;
END;

CREATE TABLE messages_checksums (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;
INSERT INTO messages_checksums SELECT t.id AS id, row_checksum(CAST(concat_ws(x'1f', t.id, t.uid, t.namespace_id, t.session_id, t.position, t.role, t.content, t.user_id, t.speaker, t.metadata, t.created_at, t.edited_at, t.indexed, t.key_id) AS BLOB)) AS checksum FROM messages t;
CREATE TRIGGER messages_checksum_added AFTER INSERT ON messages BEGIN
    INSERT OR REPLACE INTO messages_checksums VALUES (NEW.id, row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.uid, NEW.namespace_id, NEW.session_id, NEW.position, NEW.role, NEW.content, NEW.user_id, NEW.speaker, NEW.metadata, NEW.created_at, NEW.edited_at, NEW.indexed, NEW.key_id) AS BLOB)));
END;
CREATE TRIGGER messages_checksum_changed AFTER UPDATE OF id, uid, namespace_id, session_id, position, role, content, user_id, speaker, metadata, created_at, edited_at, indexed, key_id ON messages BEGIN
    UPDATE OR REPLACE messages_checksums SET id = NEW.id, checksum = checksum
        + row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.uid, NEW.namespace_id, NEW.session_id, NEW.position, NEW.role, NEW.content, NEW.user_id, NEW.speaker, NEW.metadata, NEW.created_at, NEW.edited_at, NEW.indexed, NEW.key_id) AS BLOB))
        - row_checksum(CAST(concat_ws(x'1f', OLD.id, OLD.uid, OLD.namespace_id, OLD.session_id, OLD.position, OLD.role, OLD.content, OLD.user_id, OLD.speaker, OLD.metadata, OLD.created_at, OLD.edited_at, OLD.indexed, OLD.key_id) AS BLOB))
    WHERE id = OLD.id;
END;
CREATE TRIGGER messages_checksum_deleted AFTER DELETE ON messages BEGIN
    DELETE FROM messages_checksums WHERE id = OLD.id;
END;

CREATE TABLE blocks_checksums (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;
INSERT INTO blocks_checksums SELECT t.id AS id, row_checksum(CAST(concat_ws(x'1f', t.id, t.uid, t.namespace_id, t.label, t.value, t.description, t.max_chars, t.read_only, t.version, t.created_at, t.updated_at) AS BLOB)) AS checksum FROM blocks t;
CREATE TRIGGER blocks_checksum_added AFTER INSERT ON blocks BEGIN
    INSERT OR REPLACE INTO blocks_checksums VALUES (NEW.id, row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.uid, NEW.namespace_id, NEW.label, NEW.value, NEW.description, NEW.max_chars, NEW.read_only, NEW.version, NEW.created_at, NEW.updated_at) AS BLOB)));
END;
CREATE TRIGGER blocks_checksum_changed AFTER UPDATE OF id, uid, namespace_id, label, value, description, max_chars, read_only, version, created_at, updated_at ON blocks BEGIN
    UPDATE OR REPLACE blocks_checksums SET id = NEW.id, checksum = checksum
        + row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.uid, NEW.namespace_id, NEW.label, NEW.value, NEW.description, NEW.max_chars, NEW.read_only, NEW.version, NEW.created_at, NEW.updated_at) AS BLOB))
        - row_checksum(CAST(concat_ws(x'1f', OLD.id, OLD.uid, OLD.namespace_id, OLD.label, OLD.value, OLD.description, OLD.max_chars, OLD.read_only, OLD.version, OLD.created_at, OLD.updated_at) AS BLOB))
    WHERE id = OLD.id;
END;
CREATE TRIGGER blocks_checksum_deleted AFTER DELETE ON blocks BEGIN
    DELETE FROM blocks_checksums WHERE id = OLD.id;
END;

CREATE TABLE block_history_checksums (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;
INSERT INTO block_history_checksums SELECT t.block_id AS id, sum(row_checksum(CAST(concat_ws(x'1f', t.block_id, t.version, t.value, t.description, t.max_chars, t.read_only, t.actor, t.at) AS BLOB))) AS checksum FROM block_history t GROUP BY 1;
CREATE TRIGGER block_history_checksum_added AFTER INSERT ON block_history BEGIN
    INSERT INTO block_history_checksums VALUES (NEW.block_id, row_checksum(CAST(concat_ws(x'1f', NEW.block_id, NEW.version, NEW.value, NEW.description, NEW.max_chars, NEW.read_only, NEW.actor, NEW.at) AS BLOB)))
    ON CONFLICT (id) DO UPDATE SET checksum = checksum + excluded.checksum;
END;
CREATE TRIGGER block_history_checksum_changed AFTER UPDATE OF block_id, version, value, description, max_chars, read_only, actor, at ON block_history BEGIN
    UPDATE block_history_checksums SET checksum = checksum
        - row_checksum(CAST(concat_ws(x'1f', OLD.block_id, OLD.version, OLD.value, OLD.description, OLD.max_chars, OLD.read_only, OLD.actor, OLD.at) AS BLOB))
    WHERE id = OLD.block_id;
    DELETE FROM block_history_checksums WHERE id = OLD.block_id AND NOT EXISTS (SELECT 1 FROM block_history t WHERE t.block_id = OLD.block_id);
    INSERT INTO block_history_checksums VALUES (NEW.block_id, row_checksum(CAST(concat_ws(x'1f', NEW.block_id, NEW.version, NEW.value, NEW.description, NEW.max_chars, NEW.read_only, NEW.actor, NEW.at) AS BLOB)))
    ON CONFLICT (id) DO UPDATE SET checksum = checksum + excluded.checksum;
END;
CREATE TRIGGER block_history_checksum_deleted AFTER DELETE ON block_history BEGIN
    UPDATE block_history_checksums SET checksum = checksum
        - row_checksum(CAST(concat_ws(x'1f', OLD.block_id, OLD.version, OLD.value, OLD.description, OLD.max_chars, OLD.read_only, OLD.actor, OLD.at) AS BLOB))
    WHERE id = OLD.block_id;
    DELETE FROM block_history_checksums WHERE id = OLD.block_id AND NOT EXISTS (SELECT 1 FROM block_history t WHERE t.block_id = OLD.block_id);
END;

CREATE TABLE memories_checksums (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;
INSERT INTO memories_checksums SELECT t.id AS id, row_checksum(CAST(concat_ws(x'1f', t.id, t.namespace_id, t.text, t.source, t.key, t.metadata, t.document_at, t.created_at, t.updated_at, t.pinned, t.archived, t.origin_class, t.valid_to, t.key_id) AS BLOB)) AS checksum FROM memories t;
CREATE TRIGGER memories_checksum_added AFTER INSERT ON memories BEGIN
    INSERT OR REPLACE INTO memories_checksums VALUES (NEW.id, row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.text, NEW.source, NEW.key, NEW.metadata, NEW.document_at, NEW.created_at, NEW.updated_at, NEW.pinned, NEW.archived, NEW.origin_class, NEW.valid_to, NEW.key_id) AS BLOB)));
END;
CREATE TRIGGER memories_checksum_changed AFTER UPDATE OF id, namespace_id, text, source, key, metadata, document_at, created_at, updated_at, pinned, archived, origin_class, valid_to, key_id ON memories BEGIN
    UPDATE OR REPLACE memories_checksums SET id = NEW.id, checksum = checksum
        + row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.text, NEW.source, NEW.key, NEW.metadata, NEW.document_at, NEW.created_at, NEW.updated_at, NEW.pinned, NEW.archived, NEW.origin_class, NEW.valid_to, NEW.key_id) AS BLOB))
        - row_checksum(CAST(concat_ws(x'1f', OLD.id, OLD.namespace_id, OLD.text, OLD.source, OLD.key, OLD.metadata, OLD.document_at, OLD.created_at, OLD.updated_at, OLD.pinned, OLD.archived, OLD.origin_class, OLD.valid_to, OLD.key_id) AS BLOB))
    WHERE id = OLD.id;
END;
CREATE TRIGGER memories_checksum_deleted AFTER DELETE ON memories BEGIN
    DELETE FROM memories_checksums WHERE id = OLD.id;
END;

CREATE TABLE memory_tags_checksums (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;
INSERT INTO memory_tags_checksums SELECT t.memory_id AS id, sum(row_checksum(CAST(concat_ws(x'1f', t.memory_id, t.folded, t.namespace_id, t.tag, t.added_at) AS BLOB))) AS checksum FROM memory_tags t GROUP BY 1;
CREATE TRIGGER memory_tags_checksum_added AFTER INSERT ON memory_tags BEGIN
    INSERT INTO memory_tags_checksums VALUES (NEW.memory_id, row_checksum(CAST(concat_ws(x'1f', NEW.memory_id, NEW.folded, NEW.namespace_id, NEW.tag, NEW.added_at) AS BLOB)))
    ON CONFLICT (id) DO UPDATE SET checksum = checksum + excluded.checksum;
END;
CREATE TRIGGER memory_tags_checksum_changed AFTER UPDATE OF memory_id, folded, namespace_id, tag, added_at ON memory_tags BEGIN
    UPDATE memory_tags_checksums SET checksum = checksum
        - row_checksum(CAST(concat_ws(x'1f', OLD.memory_id, OLD.folded, OLD.namespace_id, OLD.tag, OLD.added_at) AS BLOB))
    WHERE id = OLD.memory_id;
    DELETE FROM memory_tags_checksums WHERE id = OLD.memory_id AND NOT EXISTS (SELECT 1 FROM memory_tags t WHERE t.memory_id = OLD.memory_id);
    INSERT INTO memory_tags_checksums VALUES (NEW.memory_id, row_checksum(CAST(concat_ws(x'1f', NEW.memory_id, NEW.folded, NEW.namespace_id, NEW.tag, NEW.added_at) AS BLOB)))
    ON CONFLICT (id) DO UPDATE SET checksum = checksum + excluded.checksum;
END;
CREATE TRIGGER memory_tags_checksum_deleted AFTER DELETE ON memory_tags BEGIN
    UPDATE memory_tags_checksums SET checksum = checksum
        - row_checksum(CAST(concat_ws(x'1f', OLD.memory_id, OLD.folded, OLD.namespace_id, OLD.tag, OLD.added_at) AS BLOB))
    WHERE id = OLD.memory_id;
    DELETE FROM memory_tags_checksums WHERE id = OLD.memory_id AND NOT EXISTS (SELECT 1 FROM memory_tags t WHERE t.memory_id = OLD.memory_id);
END;

CREATE TABLE links_checksums (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;
INSERT INTO links_checksums SELECT t.from_id AS id, sum(row_checksum(CAST(concat_ws(x'1f', t.from_id, t.to_id, t.type, t.created_at) AS BLOB))) AS checksum FROM links t GROUP BY 1;
CREATE TRIGGER links_checksum_added AFTER INSERT ON links BEGIN
    INSERT INTO links_checksums VALUES (NEW.from_id, row_checksum(CAST(concat_ws(x'1f', NEW.from_id, NEW.to_id, NEW.type, NEW.created_at) AS BLOB)))
    ON CONFLICT (id) DO UPDATE SET checksum = checksum + excluded.checksum;
END;
CREATE TRIGGER links_checksum_changed AFTER UPDATE OF from_id, to_id, type, created_at ON links BEGIN
    UPDATE links_checksums SET checksum = checksum
        - row_checksum(CAST(concat_ws(x'1f', OLD.from_id, OLD.to_id, OLD.type, OLD.created_at) AS BLOB))
    WHERE id = OLD.from_id;
    DELETE FROM links_checksums WHERE id = OLD.from_id AND NOT EXISTS (SELECT 1 FROM links t WHERE t.from_id = OLD.from_id);
    INSERT INTO links_checksums VALUES (NEW.from_id, row_checksum(CAST(concat_ws(x'1f', NEW.from_id, NEW.to_id, NEW.type, NEW.created_at) AS BLOB)))
    ON CONFLICT (id) DO UPDATE SET checksum = checksum + excluded.checksum;
END;
CREATE TRIGGER links_checksum_deleted AFTER DELETE ON links BEGIN
    UPDATE links_checksums SET checksum = checksum
        - row_checksum(CAST(concat_ws(x'1f', OLD.from_id, OLD.to_id, OLD.type, OLD.created_at) AS BLOB))
    WHERE id = OLD.from_id;
    DELETE FROM links_checksums WHERE id = OLD.from_id AND NOT EXISTS (SELECT 1 FROM links t WHERE t.from_id = OLD.from_id);
END;

CREATE TABLE facts_checksums (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;
INSERT INTO facts_checksums SELECT t.id AS id, row_checksum(CAST(concat_ws(x'1f', t.id, t.namespace_id, t.memory_id, t.ordinal, t.text, t.made_by, t.created_at) AS BLOB)) AS checksum FROM facts t;
CREATE TRIGGER facts_checksum_added AFTER INSERT ON facts BEGIN
    INSERT OR REPLACE INTO facts_checksums VALUES (NEW.id, row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.memory_id, NEW.ordinal, NEW.text, NEW.made_by, NEW.created_at) AS BLOB)));
END;
CREATE TRIGGER facts_checksum_changed AFTER UPDATE OF id, namespace_id, memory_id, ordinal, text, made_by, created_at ON facts BEGIN
    UPDATE OR REPLACE facts_checksums SET id = NEW.id, checksum = checksum
        + row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.memory_id, NEW.ordinal, NEW.text, NEW.made_by, NEW.created_at) AS BLOB))
        - row_checksum(CAST(concat_ws(x'1f', OLD.id, OLD.namespace_id, OLD.memory_id, OLD.ordinal, OLD.text, OLD.made_by, OLD.created_at) AS BLOB))
    WHERE id = OLD.id;
END;
CREATE TRIGGER facts_checksum_deleted AFTER DELETE ON facts BEGIN
    DELETE FROM facts_checksums WHERE id = OLD.id;
END;

CREATE TABLE learned_with_checksums (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;
INSERT INTO learned_with_checksums SELECT t.memory_id AS id, sum(row_checksum(CAST(concat_ws(x'1f', t.kind, t.name, t.memory_id) AS BLOB))) AS checksum FROM learned_with t GROUP BY 1;
CREATE TRIGGER learned_with_checksum_added AFTER INSERT ON learned_with BEGIN
    INSERT INTO learned_with_checksums VALUES (NEW.memory_id, row_checksum(CAST(concat_ws(x'1f', NEW.kind, NEW.name, NEW.memory_id) AS BLOB)))
    ON CONFLICT (id) DO UPDATE SET checksum = checksum + excluded.checksum;
END;
CREATE TRIGGER learned_with_checksum_changed AFTER UPDATE OF kind, name, memory_id ON learned_with BEGIN
    UPDATE learned_with_checksums SET checksum = checksum
        - row_checksum(CAST(concat_ws(x'1f', OLD.kind, OLD.name, OLD.memory_id) AS BLOB))
    WHERE id = OLD.memory_id;
    DELETE FROM learned_with_checksums WHERE id = OLD.memory_id AND NOT EXISTS (SELECT 1 FROM learned_with t WHERE t.memory_id = OLD.memory_id);
    INSERT INTO learned_with_checksums VALUES (NEW.memory_id, row_checksum(CAST(concat_ws(x'1f', NEW.kind, NEW.name, NEW.memory_id) AS BLOB)))
    ON CONFLICT (id) DO UPDATE SET checksum = checksum + excluded.checksum;
END;
CREATE TRIGGER learned_with_checksum_deleted AFTER DELETE ON learned_with BEGIN
    UPDATE learned_with_checksums SET checksum = checksum
        - row_checksum(CAST(concat_ws(x'1f', OLD.kind, OLD.name, OLD.memory_id) AS BLOB))
    WHERE id = OLD.memory_id;
    DELETE FROM learned_with_checksums WHERE id = OLD.memory_id AND NOT EXISTS (SELECT 1 FROM learned_with t WHERE t.memory_id = OLD.memory_id);
END;

CREATE TABLE history_checksums (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;
INSERT INTO history_checksums SELECT t.id AS id, row_checksum(CAST(concat_ws(x'1f', t.id, t.namespace_id, t.memory_id, t.action, t.actor, t.job_id, t.at, t.before, t.after, t.imported) AS BLOB)) AS checksum FROM history t;
CREATE TRIGGER history_checksum_added AFTER INSERT ON history BEGIN
    INSERT OR REPLACE INTO history_checksums VALUES (NEW.id, row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.memory_id, NEW.action, NEW.actor, NEW.job_id, NEW.at, NEW.before, NEW.after, NEW.imported) AS BLOB)));
END;
CREATE TRIGGER history_checksum_changed AFTER UPDATE OF id, namespace_id, memory_id, action, actor, job_id, at, before, after, imported ON history BEGIN
    UPDATE OR REPLACE history_checksums SET id = NEW.id, checksum = checksum
        + row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.memory_id, NEW.action, NEW.actor, NEW.job_id, NEW.at, NEW.before, NEW.after, NEW.imported) AS BLOB))
        - row_checksum(CAST(concat_ws(x'1f', OLD.id, OLD.namespace_id, OLD.memory_id, OLD.action, OLD.actor, OLD.job_id, OLD.at, OLD.before, OLD.after, OLD.imported) AS BLOB))
    WHERE id = OLD.id;
END;
CREATE TRIGGER history_checksum_deleted AFTER DELETE ON history BEGIN
    DELETE FROM history_checksums WHERE id = OLD.id;
END;

CREATE TABLE passages_checksums (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;
INSERT INTO passages_checksums SELECT t.id AS id, row_checksum(CAST(concat_ws(x'1f', t.id, t.namespace_id, t.kind, t.owner_id, t.ordinal, t.text, t.profile, t.source, t.occurred_at, t.archived, t.dated, t.session_id, t.position, t.role, t.user_id, t.speaker, t.fact_id) AS BLOB)) AS checksum FROM passages t;
CREATE TRIGGER passages_checksum_added AFTER INSERT ON passages BEGIN
    INSERT OR REPLACE INTO passages_checksums VALUES (NEW.id, row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.kind, NEW.owner_id, NEW.ordinal, NEW.text, NEW.profile, NEW.source, NEW.occurred_at, NEW.archived, NEW.dated, NEW.session_id, NEW.position, NEW.role, NEW.user_id, NEW.speaker, NEW.fact_id) AS BLOB)));
END;
CREATE TRIGGER passages_checksum_changed AFTER UPDATE OF id, namespace_id, kind, owner_id, ordinal, text, profile, source, occurred_at, archived, dated, session_id, position, role, user_id, speaker, fact_id ON passages BEGIN
    UPDATE OR REPLACE passages_checksums SET id = NEW.id, checksum = checksum
        + row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.kind, NEW.owner_id, NEW.ordinal, NEW.text, NEW.profile, NEW.source, NEW.occurred_at, NEW.archived, NEW.dated, NEW.session_id, NEW.position, NEW.role, NEW.user_id, NEW.speaker, NEW.fact_id) AS BLOB))
        - row_checksum(CAST(concat_ws(x'1f', OLD.id, OLD.namespace_id, OLD.kind, OLD.owner_id, OLD.ordinal, OLD.text, OLD.profile, OLD.source, OLD.occurred_at, OLD.archived, OLD.dated, OLD.session_id, OLD.position, OLD.role, OLD.user_id, OLD.speaker, OLD.fact_id) AS BLOB))
    WHERE id = OLD.id;
END;
CREATE TRIGGER passages_checksum_deleted AFTER DELETE ON passages BEGIN
    DELETE FROM passages_checksums WHERE id = OLD.id;
END;

CREATE TABLE vectors_checksums (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;
INSERT INTO vectors_checksums SELECT t.passage_id AS id, sum(row_checksum(CAST(concat_ws(x'1f', t.passage_id, t.model_id, t.vector, t.tokens) AS BLOB))) AS checksum FROM vectors t GROUP BY 1;
CREATE TRIGGER vectors_checksum_added AFTER INSERT ON vectors BEGIN
    INSERT INTO vectors_checksums VALUES (NEW.passage_id, row_checksum(CAST(concat_ws(x'1f', NEW.passage_id, NEW.model_id, NEW.vector, NEW.tokens) AS BLOB)))
    ON CONFLICT (id) DO UPDATE SET checksum = checksum + excluded.checksum;
END;
CREATE TRIGGER vectors_checksum_changed AFTER UPDATE OF passage_id, model_id, vector, tokens ON vectors BEGIN
    UPDATE vectors_checksums SET checksum = checksum
        - row_checksum(CAST(concat_ws(x'1f', OLD.passage_id, OLD.model_id, OLD.vector, OLD.tokens) AS BLOB))
    WHERE id = OLD.passage_id;
    DELETE FROM vectors_checksums WHERE id = OLD.passage_id AND NOT EXISTS (SELECT 1 FROM vectors t WHERE t.passage_id = OLD.passage_id);
    INSERT INTO vectors_checksums VALUES (NEW.passage_id, row_checksum(CAST(concat_ws(x'1f', NEW.passage_id, NEW.model_id, NEW.vector, NEW.tokens) AS BLOB)))
    ON CONFLICT (id) DO UPDATE SET checksum = checksum + excluded.checksum;
END;
CREATE TRIGGER vectors_checksum_deleted AFTER DELETE ON vectors BEGIN
    UPDATE vectors_checksums SET checksum = checksum
        - row_checksum(CAST(concat_ws(x'1f', OLD.passage_id, OLD.model_id, OLD.vector, OLD.tokens) AS BLOB))
    WHERE id = OLD.passage_id;
    DELETE FROM vectors_checksums WHERE id = OLD.passage_id AND NOT EXISTS (SELECT 1 FROM vectors t WHERE t.passage_id = OLD.passage_id);
END;

CREATE TABLE claims_checksums (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;
INSERT INTO claims_checksums SELECT t.id AS id, row_checksum(CAST(concat_ws(x'1f', t.id, t.namespace_id, t.kind, t.concept_id, t.other_id, t.text, CAST(round(t.confidence * 1000000) AS INTEGER), t.made_by, t.message_id, t.job_id, t.created_at) AS BLOB)) AS checksum FROM claims t;
CREATE TRIGGER claims_checksum_added AFTER INSERT ON claims BEGIN
    INSERT OR REPLACE INTO claims_checksums VALUES (NEW.id, row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.kind, NEW.concept_id, NEW.other_id, NEW.text, CAST(round(NEW.confidence * 1000000) AS INTEGER), NEW.made_by, NEW.message_id, NEW.job_id, NEW.created_at) AS BLOB)));
END;
CREATE TRIGGER claims_checksum_changed AFTER UPDATE OF id, namespace_id, kind, concept_id, other_id, text, confidence, made_by, message_id, job_id, created_at ON claims BEGIN
    UPDATE OR REPLACE claims_checksums SET id = NEW.id, checksum = checksum
        + row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.kind, NEW.concept_id, NEW.other_id, NEW.text, CAST(round(NEW.confidence * 1000000) AS INTEGER), NEW.made_by, NEW.message_id, NEW.job_id, NEW.created_at) AS BLOB))
        - row_checksum(CAST(concat_ws(x'1f', OLD.id, OLD.namespace_id, OLD.kind, OLD.concept_id, OLD.other_id, OLD.text, CAST(round(OLD.confidence * 1000000) AS INTEGER), OLD.made_by, OLD.message_id, OLD.job_id, OLD.created_at) AS BLOB))
    WHERE id = OLD.id;
END;
CREATE TRIGGER claims_checksum_deleted AFTER DELETE ON claims BEGIN
    DELETE FROM claims_checksums WHERE id = OLD.id;
END;

CREATE TABLE topics_checksums (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;
INSERT INTO topics_checksums SELECT t.id AS id, row_checksum(CAST(concat_ws(x'1f', t.id, t.namespace_id, t.name, t.summary, t.named_by, t.created_at) AS BLOB)) AS checksum FROM topics t;
CREATE TRIGGER topics_checksum_added AFTER INSERT ON topics BEGIN
    INSERT OR REPLACE INTO topics_checksums VALUES (NEW.id, row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.name, NEW.summary, NEW.named_by, NEW.created_at) AS BLOB)));
END;
CREATE TRIGGER topics_checksum_changed AFTER UPDATE OF id, namespace_id, name, summary, named_by, created_at ON topics BEGIN
    UPDATE OR REPLACE topics_checksums SET id = NEW.id, checksum = checksum
        + row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.name, NEW.summary, NEW.named_by, NEW.created_at) AS BLOB))
        - row_checksum(CAST(concat_ws(x'1f', OLD.id, OLD.namespace_id, OLD.name, OLD.summary, OLD.named_by, OLD.created_at) AS BLOB))
    WHERE id = OLD.id;
END;
CREATE TRIGGER topics_checksum_deleted AFTER DELETE ON topics BEGIN
    DELETE FROM topics_checksums WHERE id = OLD.id;
END;

CREATE TABLE hidden_concepts_checksums (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;
INSERT INTO hidden_concepts_checksums SELECT t.namespace_id AS id, sum(row_checksum(CAST(concat_ws(x'1f', t.namespace_id, t.key_hash) AS BLOB))) AS checksum FROM hidden_concepts t GROUP BY 1;
CREATE TRIGGER hidden_concepts_checksum_added AFTER INSERT ON hidden_concepts BEGIN
    INSERT INTO hidden_concepts_checksums VALUES (NEW.namespace_id, row_checksum(CAST(concat_ws(x'1f', NEW.namespace_id, NEW.key_hash) AS BLOB)))
    ON CONFLICT (id) DO UPDATE SET checksum = checksum + excluded.checksum;
END;
CREATE TRIGGER hidden_concepts_checksum_changed AFTER UPDATE OF namespace_id, key_hash ON hidden_concepts BEGIN
    UPDATE hidden_concepts_checksums SET checksum = checksum
        - row_checksum(CAST(concat_ws(x'1f', OLD.namespace_id, OLD.key_hash) AS BLOB))
    WHERE id = OLD.namespace_id;
    DELETE FROM hidden_concepts_checksums WHERE id = OLD.namespace_id AND NOT EXISTS (SELECT 1 FROM hidden_concepts t WHERE t.namespace_id = OLD.namespace_id);
    INSERT INTO hidden_concepts_checksums VALUES (NEW.namespace_id, row_checksum(CAST(concat_ws(x'1f', NEW.namespace_id, NEW.key_hash) AS BLOB)))
    ON CONFLICT (id) DO UPDATE SET checksum = checksum + excluded.checksum;
END;
CREATE TRIGGER hidden_concepts_checksum_deleted AFTER DELETE ON hidden_concepts BEGIN
    UPDATE hidden_concepts_checksums SET checksum = checksum
        - row_checksum(CAST(concat_ws(x'1f', OLD.namespace_id, OLD.key_hash) AS BLOB))
    WHERE id = OLD.namespace_id;
    DELETE FROM hidden_concepts_checksums WHERE id = OLD.namespace_id AND NOT EXISTS (SELECT 1 FROM hidden_concepts t WHERE t.namespace_id = OLD.namespace_id);
END;

CREATE TABLE extraction_profiles_checksums (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;
INSERT INTO extraction_profiles_checksums SELECT t.namespace_id AS id, sum(row_checksum(CAST(concat_ws(x'1f', t.namespace_id, t.prefix, t.fields, t.updated_at) AS BLOB))) AS checksum FROM extraction_profiles t GROUP BY 1;
CREATE TRIGGER extraction_profiles_checksum_added AFTER INSERT ON extraction_profiles BEGIN
    INSERT INTO extraction_profiles_checksums VALUES (NEW.namespace_id, row_checksum(CAST(concat_ws(x'1f', NEW.namespace_id, NEW.prefix, NEW.fields, NEW.updated_at) AS BLOB)))
    ON CONFLICT (id) DO UPDATE SET checksum = checksum + excluded.checksum;
END;
CREATE TRIGGER extraction_profiles_checksum_changed AFTER UPDATE OF namespace_id, prefix, fields, updated_at ON extraction_profiles BEGIN
    UPDATE extraction_profiles_checksums SET checksum = checksum
        - row_checksum(CAST(concat_ws(x'1f', OLD.namespace_id, OLD.prefix, OLD.fields, OLD.updated_at) AS BLOB))
    WHERE id = OLD.namespace_id;
    DELETE FROM extraction_profiles_checksums WHERE id = OLD.namespace_id AND NOT EXISTS (SELECT 1 FROM extraction_profiles t WHERE t.namespace_id = OLD.namespace_id);
    INSERT INTO extraction_profiles_checksums VALUES (NEW.namespace_id, row_checksum(CAST(concat_ws(x'1f', NEW.namespace_id, NEW.prefix, NEW.fields, NEW.updated_at) AS BLOB)))
    ON CONFLICT (id) DO UPDATE SET checksum = checksum + excluded.checksum;
END;
CREATE TRIGGER extraction_profiles_checksum_deleted AFTER DELETE ON extraction_profiles BEGIN
    UPDATE extraction_profiles_checksums SET checksum = checksum
        - row_checksum(CAST(concat_ws(x'1f', OLD.namespace_id, OLD.prefix, OLD.fields, OLD.updated_at) AS BLOB))
    WHERE id = OLD.namespace_id;
    DELETE FROM extraction_profiles_checksums WHERE id = OLD.namespace_id AND NOT EXISTS (SELECT 1 FROM extraction_profiles t WHERE t.namespace_id = OLD.namespace_id);
END;

CREATE TABLE tombstones_checksums (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;
INSERT INTO tombstones_checksums SELECT 0 AS id, sum(row_checksum(CAST(concat_ws(x'1f', t.kind, t.owner_id, t.erased_at) AS BLOB))) AS checksum FROM tombstones t GROUP BY 1;
CREATE TRIGGER tombstones_checksum_added AFTER INSERT ON tombstones BEGIN
    INSERT INTO tombstones_checksums VALUES (0, row_checksum(CAST(concat_ws(x'1f', NEW.kind, NEW.owner_id, NEW.erased_at) AS BLOB)))
    ON CONFLICT (id) DO UPDATE SET checksum = checksum + excluded.checksum;
END;
CREATE TRIGGER tombstones_checksum_changed AFTER UPDATE OF kind, owner_id, erased_at ON tombstones BEGIN
    UPDATE tombstones_checksums SET checksum = checksum
        - row_checksum(CAST(concat_ws(x'1f', OLD.kind, OLD.owner_id, OLD.erased_at) AS BLOB))
    WHERE id = 0;
    DELETE FROM tombstones_checksums WHERE id = 0 AND NOT EXISTS (SELECT 1 FROM tombstones t WHERE 0 = 0);
    INSERT INTO tombstones_checksums VALUES (0, row_checksum(CAST(concat_ws(x'1f', NEW.kind, NEW.owner_id, NEW.erased_at) AS BLOB)))
    ON CONFLICT (id) DO UPDATE SET checksum = checksum + excluded.checksum;
END;
CREATE TRIGGER tombstones_checksum_deleted AFTER DELETE ON tombstones BEGIN
    UPDATE tombstones_checksums SET checksum = checksum
        - row_checksum(CAST(concat_ws(x'1f', OLD.kind, OLD.owner_id, OLD.erased_at) AS BLOB))
    WHERE id = 0;
    DELETE FROM tombstones_checksums WHERE id = 0 AND NOT EXISTS (SELECT 1 FROM tombstones t WHERE 0 = 0);
END;

CREATE TABLE renumbered_memories_checksums (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;
INSERT INTO renumbered_memories_checksums SELECT t.old_id AS id, row_checksum(CAST(concat_ws(x'1f', t.old_id, t.new_id) AS BLOB)) AS checksum FROM renumbered_memories t;
CREATE TRIGGER renumbered_memories_checksum_added AFTER INSERT ON renumbered_memories BEGIN
    INSERT OR REPLACE INTO renumbered_memories_checksums VALUES (NEW.old_id, row_checksum(CAST(concat_ws(x'1f', NEW.old_id, NEW.new_id) AS BLOB)));
END;
CREATE TRIGGER renumbered_memories_checksum_changed AFTER UPDATE OF old_id, new_id ON renumbered_memories BEGIN
    UPDATE OR REPLACE renumbered_memories_checksums SET id = NEW.old_id, checksum = checksum
        + row_checksum(CAST(concat_ws(x'1f', NEW.old_id, NEW.new_id) AS BLOB))
        - row_checksum(CAST(concat_ws(x'1f', OLD.old_id, OLD.new_id) AS BLOB))
    WHERE id = OLD.old_id;
END;
CREATE TRIGGER renumbered_memories_checksum_deleted AFTER DELETE ON renumbered_memories BEGIN
    DELETE FROM renumbered_memories_checksums WHERE id = OLD.old_id;
END;

CREATE TABLE api_keys_checksums (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;
INSERT INTO api_keys_checksums SELECT 0 AS id, sum(row_checksum(CAST(concat_ws(x'1f', t.id, t.name, t.principal_id, t.key_hash, t.key_prefix, t.role, t.namespace, t.prefixes, t.created_at, t.revoked_at, t.quota_requests_per_minute, t.quota_memories, t.quota_stored_bytes, t.quota_jobs_per_day, t.quota_extractions_per_day) AS BLOB))) AS checksum FROM api_keys t GROUP BY 1;
CREATE TRIGGER api_keys_checksum_added AFTER INSERT ON api_keys BEGIN
    INSERT INTO api_keys_checksums VALUES (0, row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.name, NEW.principal_id, NEW.key_hash, NEW.key_prefix, NEW.role, NEW.namespace, NEW.prefixes, NEW.created_at, NEW.revoked_at, NEW.quota_requests_per_minute, NEW.quota_memories, NEW.quota_stored_bytes, NEW.quota_jobs_per_day, NEW.quota_extractions_per_day) AS BLOB)))
    ON CONFLICT (id) DO UPDATE SET checksum = checksum + excluded.checksum;
END;
CREATE TRIGGER api_keys_checksum_changed AFTER UPDATE OF id, name, principal_id, key_hash, key_prefix, role, namespace, prefixes, created_at, revoked_at, quota_requests_per_minute, quota_memories, quota_stored_bytes, quota_jobs_per_day, quota_extractions_per_day ON api_keys BEGIN
    UPDATE api_keys_checksums SET checksum = checksum
        - row_checksum(CAST(concat_ws(x'1f', OLD.id, OLD.name, OLD.principal_id, OLD.key_hash, OLD.key_prefix, OLD.role, OLD.namespace, OLD.prefixes, OLD.created_at, OLD.revoked_at, OLD.quota_requests_per_minute, OLD.quota_memories, OLD.quota_stored_bytes, OLD.quota_jobs_per_day, OLD.quota_extractions_per_day) AS BLOB))
    WHERE id = 0;
    DELETE FROM api_keys_checksums WHERE id = 0 AND NOT EXISTS (SELECT 1 FROM api_keys t WHERE 0 = 0);
    INSERT INTO api_keys_checksums VALUES (0, row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.name, NEW.principal_id, NEW.key_hash, NEW.key_prefix, NEW.role, NEW.namespace, NEW.prefixes, NEW.created_at, NEW.revoked_at, NEW.quota_requests_per_minute, NEW.quota_memories, NEW.quota_stored_bytes, NEW.quota_jobs_per_day, NEW.quota_extractions_per_day) AS BLOB)))
    ON CONFLICT (id) DO UPDATE SET checksum = checksum + excluded.checksum;
END;
CREATE TRIGGER api_keys_checksum_deleted AFTER DELETE ON api_keys BEGIN
    UPDATE api_keys_checksums SET checksum = checksum
        - row_checksum(CAST(concat_ws(x'1f', OLD.id, OLD.name, OLD.principal_id, OLD.key_hash, OLD.key_prefix, OLD.role, OLD.namespace, OLD.prefixes, OLD.created_at, OLD.revoked_at, OLD.quota_requests_per_minute, OLD.quota_memories, OLD.quota_stored_bytes, OLD.quota_jobs_per_day, OLD.quota_extractions_per_day) AS BLOB))
    WHERE id = 0;
    DELETE FROM api_keys_checksums WHERE id = 0 AND NOT EXISTS (SELECT 1 FROM api_keys t WHERE 0 = 0);
END;

CREATE TABLE audit_events_checksums (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;
INSERT INTO audit_events_checksums SELECT t.id AS id, row_checksum(CAST(concat_ws(x'1f', t.id, t.at, t.action, t.actor, t.namespace, t.resource_id, t.method, t.route, t.status, t.address, t.count, t.detail) AS BLOB)) AS checksum FROM audit_events t;
CREATE TRIGGER audit_events_checksum_added AFTER INSERT ON audit_events BEGIN
    INSERT OR REPLACE INTO audit_events_checksums VALUES (NEW.id, row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.at, NEW.action, NEW.actor, NEW.namespace, NEW.resource_id, NEW.method, NEW.route, NEW.status, NEW.address, NEW.count, NEW.detail) AS BLOB)));
END;
CREATE TRIGGER audit_events_checksum_changed AFTER UPDATE OF id, at, action, actor, namespace, resource_id, method, route, status, address, count, detail ON audit_events BEGIN
    UPDATE OR REPLACE audit_events_checksums SET id = NEW.id, checksum = checksum
        + row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.at, NEW.action, NEW.actor, NEW.namespace, NEW.resource_id, NEW.method, NEW.route, NEW.status, NEW.address, NEW.count, NEW.detail) AS BLOB))
        - row_checksum(CAST(concat_ws(x'1f', OLD.id, OLD.at, OLD.action, OLD.actor, OLD.namespace, OLD.resource_id, OLD.method, OLD.route, OLD.status, OLD.address, OLD.count, OLD.detail) AS BLOB))
    WHERE id = OLD.id;
END;
CREATE TRIGGER audit_events_checksum_deleted AFTER DELETE ON audit_events BEGIN
    DELETE FROM audit_events_checksums WHERE id = OLD.id;
END;
