-- When a message was stored, which `created_at` need not be; null of one that an earlier release stored.
ALTER TABLE messages ADD COLUMN stored_at INTEGER;

-- What a message was until an edit replaced it at `replaced_at`. Its present state is in `messages`. `key_id` is the key
-- that edited it, whose quota it counts to.
CREATE TABLE message_versions (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    message_id   INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    content      TEXT NOT NULL,
    metadata     TEXT CHECK (metadata IS NULL OR json_valid(metadata)),
    edited_at    INTEGER,
    replaced_at  INTEGER NOT NULL,
    key_id       TEXT
) STRICT;
CREATE INDEX message_versions_by_message ON message_versions (message_id, id);
CREATE INDEX message_versions_by_time ON message_versions (namespace_id, replaced_at);

-- The checksums of messages cover `stored_at`; one of a null is as before.
DROP TRIGGER messages_checksum_added;
DROP TRIGGER messages_checksum_changed;
DROP TRIGGER messages_checksum_deleted;
CREATE TRIGGER messages_checksum_added AFTER INSERT ON messages BEGIN
    INSERT OR REPLACE INTO messages_checksums VALUES (NEW.id, row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.uid, NEW.namespace_id, NEW.session_id, NEW.position, NEW.role, NEW.content, NEW.user_id, NEW.speaker, NEW.metadata, NEW.created_at, NEW.edited_at, NEW.indexed, NEW.key_id, NEW.stored_at) AS BLOB)));
END;
CREATE TRIGGER messages_checksum_changed AFTER UPDATE OF id, uid, namespace_id, session_id, position, role, content, user_id, speaker, metadata, created_at, edited_at, indexed, key_id, stored_at ON messages BEGIN
    UPDATE OR REPLACE messages_checksums SET id = NEW.id, checksum = checksum
        + row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.uid, NEW.namespace_id, NEW.session_id, NEW.position, NEW.role, NEW.content, NEW.user_id, NEW.speaker, NEW.metadata, NEW.created_at, NEW.edited_at, NEW.indexed, NEW.key_id, NEW.stored_at) AS BLOB))
        - row_checksum(CAST(concat_ws(x'1f', OLD.id, OLD.uid, OLD.namespace_id, OLD.session_id, OLD.position, OLD.role, OLD.content, OLD.user_id, OLD.speaker, OLD.metadata, OLD.created_at, OLD.edited_at, OLD.indexed, OLD.key_id, OLD.stored_at) AS BLOB))
    WHERE id = OLD.id;
END;
CREATE TRIGGER messages_checksum_deleted AFTER DELETE ON messages BEGIN
    DELETE FROM messages_checksums WHERE id = OLD.id;
END;

-- One that is of the future by its `created_at` was stored by now.
UPDATE messages SET stored_at = CAST(unixepoch('subsec') * 1000000 AS INTEGER)
WHERE created_at > CAST(unixepoch('subsec') * 1000000 AS INTEGER);

CREATE TRIGGER message_version_stored AFTER INSERT ON message_versions WHEN NEW.key_id IS NOT NULL BEGIN
    INSERT INTO key_usage VALUES (NEW.key_id, 0, octet_length(NEW.content) + coalesce(octet_length(NEW.metadata), 0))
    ON CONFLICT (key_id) DO UPDATE SET stored_bytes = stored_bytes + excluded.stored_bytes;
END;
CREATE TRIGGER message_version_changed AFTER UPDATE OF content, metadata ON message_versions
WHEN NEW.key_id IS NOT NULL BEGIN
    UPDATE key_usage SET stored_bytes = stored_bytes
        + octet_length(NEW.content) + coalesce(octet_length(NEW.metadata), 0)
        - octet_length(OLD.content) - coalesce(octet_length(OLD.metadata), 0) WHERE key_id = NEW.key_id;
END;
CREATE TRIGGER message_version_deleted AFTER DELETE ON message_versions WHEN OLD.key_id IS NOT NULL BEGIN
    UPDATE key_usage SET stored_bytes = stored_bytes - octet_length(OLD.content)
        - coalesce(octet_length(OLD.metadata), 0) WHERE key_id = OLD.key_id;
END;

CREATE TABLE message_versions_checksums (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;
INSERT INTO message_versions_checksums SELECT t.id AS id, row_checksum(CAST(concat_ws(x'1f', t.id, t.namespace_id, t.message_id, t.content, t.metadata, t.edited_at, t.replaced_at, t.key_id) AS BLOB)) AS checksum FROM message_versions t;
CREATE TRIGGER message_versions_checksum_added AFTER INSERT ON message_versions BEGIN
    INSERT OR REPLACE INTO message_versions_checksums VALUES (NEW.id, row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.message_id, NEW.content, NEW.metadata, NEW.edited_at, NEW.replaced_at, NEW.key_id) AS BLOB)));
END;
CREATE TRIGGER message_versions_checksum_changed AFTER UPDATE OF id, namespace_id, message_id, content, metadata, edited_at, replaced_at, key_id ON message_versions BEGIN
    UPDATE OR REPLACE message_versions_checksums SET id = NEW.id, checksum = checksum
        + row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.message_id, NEW.content, NEW.metadata, NEW.edited_at, NEW.replaced_at, NEW.key_id) AS BLOB))
        - row_checksum(CAST(concat_ws(x'1f', OLD.id, OLD.namespace_id, OLD.message_id, OLD.content, OLD.metadata, OLD.edited_at, OLD.replaced_at, OLD.key_id) AS BLOB))
    WHERE id = OLD.id;
END;
CREATE TRIGGER message_versions_checksum_deleted AFTER DELETE ON message_versions BEGIN
    DELETE FROM message_versions_checksums WHERE id = OLD.id;
END;
