-- A row that an import brought along: what another store says happened there, under names that this store did not check.
ALTER TABLE history ADD COLUMN imported INTEGER NOT NULL DEFAULT 0 CHECK (imported IN (0, 1));

-- Memories whose ids `souvenir-server repair-ids` replaced: backups from before still hold the old ids.
CREATE TABLE renumbered_memories (
    old_id INTEGER PRIMARY KEY,
    new_id INTEGER NOT NULL UNIQUE
) STRICT;

-- The number of the turn in which a job was started last: callers take turns.
ALTER TABLE jobs ADD COLUMN turn INTEGER;
CREATE INDEX jobs_by_turn ON jobs (namespace, actor, kind, turn);

-- Limits of a key; NULL: the default of the settings, if they have one.
ALTER TABLE api_keys ADD COLUMN quota_requests_per_minute INTEGER;
ALTER TABLE api_keys ADD COLUMN quota_memories INTEGER;
ALTER TABLE api_keys ADD COLUMN quota_stored_bytes INTEGER;
ALTER TABLE api_keys ADD COLUMN quota_jobs_per_day INTEGER;
ALTER TABLE api_keys ADD COLUMN quota_extractions_per_day INTEGER;

-- The key that created the row, whose quotas it counts towards.
ALTER TABLE memories ADD COLUMN key_id TEXT;
ALTER TABLE messages ADD COLUMN key_id TEXT;
UPDATE memories SET key_id =
    (SELECT substr(actor, 5) FROM history WHERE memory_id = memories.id AND actor LIKE 'key:%' ORDER BY id LIMIT 1)
    WHERE EXISTS (SELECT 1 FROM api_keys);

-- What a key submitted on a UTC day, counted from 1970; of each key only the last day is kept.
CREATE TABLE key_days (
    key_id      TEXT PRIMARY KEY,
    day         INTEGER NOT NULL,
    jobs        INTEGER NOT NULL,
    extractions INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What of a key is stored now. The triggers below keep it true of whatever changes the rows.
CREATE TABLE key_usage (
    key_id       TEXT PRIMARY KEY,
    memories     INTEGER NOT NULL,
    stored_bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO key_usage
    SELECT key_id, sum(memories), sum(stored_bytes) FROM (
        SELECT key_id, 1 AS memories, octet_length(text) + octet_length(metadata) AS stored_bytes FROM memories
        WHERE key_id IS NOT NULL
        UNION ALL
        SELECT substr(actor, 5), 0, coalesce(octet_length(before), 0) + coalesce(octet_length(after), 0) FROM history
        WHERE actor LIKE 'key:%' AND imported = 0
    ) GROUP BY key_id;

CREATE TRIGGER memory_stored AFTER INSERT ON memories WHEN NEW.key_id IS NOT NULL BEGIN
    INSERT INTO key_usage VALUES (NEW.key_id, 1, octet_length(NEW.text) + octet_length(NEW.metadata))
    ON CONFLICT (key_id) DO UPDATE SET memories = memories + 1, stored_bytes = stored_bytes + excluded.stored_bytes;
END;
CREATE TRIGGER memory_changed AFTER UPDATE OF text, metadata ON memories WHEN NEW.key_id IS NOT NULL BEGIN
    UPDATE key_usage SET stored_bytes = stored_bytes + octet_length(NEW.text) + octet_length(NEW.metadata)
        - octet_length(OLD.text) - octet_length(OLD.metadata) WHERE key_id = NEW.key_id;
END;
CREATE TRIGGER memory_deleted AFTER DELETE ON memories WHEN OLD.key_id IS NOT NULL BEGIN
    UPDATE key_usage SET memories = memories - 1,
        stored_bytes = stored_bytes - octet_length(OLD.text) - octet_length(OLD.metadata) WHERE key_id = OLD.key_id;
END;
CREATE TRIGGER message_stored AFTER INSERT ON messages WHEN NEW.key_id IS NOT NULL BEGIN
    INSERT INTO key_usage VALUES (NEW.key_id, 0, octet_length(NEW.content) + coalesce(octet_length(NEW.metadata), 0))
    ON CONFLICT (key_id) DO UPDATE SET stored_bytes = stored_bytes + excluded.stored_bytes;
END;
CREATE TRIGGER message_changed AFTER UPDATE OF content, metadata ON messages WHEN NEW.key_id IS NOT NULL BEGIN
    UPDATE key_usage SET stored_bytes = stored_bytes
        + octet_length(NEW.content) + coalesce(octet_length(NEW.metadata), 0)
        - octet_length(OLD.content) - coalesce(octet_length(OLD.metadata), 0) WHERE key_id = NEW.key_id;
END;
CREATE TRIGGER message_deleted AFTER DELETE ON messages WHEN OLD.key_id IS NOT NULL BEGIN
    UPDATE key_usage SET stored_bytes = stored_bytes - octet_length(OLD.content)
        - coalesce(octet_length(OLD.metadata), 0) WHERE key_id = OLD.key_id;
END;
CREATE TRIGGER history_stored AFTER INSERT ON history WHEN NEW.actor LIKE 'key:%' AND NEW.imported = 0 BEGIN
    INSERT INTO key_usage
    VALUES (substr(NEW.actor, 5), 0, coalesce(octet_length(NEW.before), 0) + coalesce(octet_length(NEW.after), 0))
    ON CONFLICT (key_id) DO UPDATE SET stored_bytes = stored_bytes + excluded.stored_bytes;
END;
CREATE TRIGGER history_changed AFTER UPDATE OF before, after ON history
WHEN NEW.actor LIKE 'key:%' AND NEW.imported = 0 BEGIN
    UPDATE key_usage SET stored_bytes = stored_bytes
        + coalesce(octet_length(NEW.before), 0) + coalesce(octet_length(NEW.after), 0)
        - coalesce(octet_length(OLD.before), 0) - coalesce(octet_length(OLD.after), 0)
    WHERE key_id = substr(NEW.actor, 5);
END;
CREATE TRIGGER history_deleted AFTER DELETE ON history WHEN OLD.actor LIKE 'key:%' AND OLD.imported = 0 BEGIN
    UPDATE key_usage SET stored_bytes = stored_bytes
        - coalesce(octet_length(OLD.before), 0) - coalesce(octet_length(OLD.after), 0)
    WHERE key_id = substr(OLD.actor, 5);
END;
