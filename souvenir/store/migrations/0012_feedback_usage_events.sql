-- Whom what a job writes is attributed to: the principal of its key and the program that sent the request, and the
-- principal to whose part of person/ it is limited.
ALTER TABLE jobs ADD COLUMN author TEXT;
ALTER TABLE jobs ADD COLUMN client TEXT;
ALTER TABLE jobs ADD COLUMN person TEXT;

-- Judgements of search results, each by a caller about one memory.
CREATE TABLE feedback (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    memory_id    INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    useful       INTEGER NOT NULL CHECK (useful IN (0, 1)),
    query        TEXT NOT NULL,
    search_id    TEXT NOT NULL,
    actor        TEXT NOT NULL,
    created_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX feedback_of_memory ON feedback (memory_id, actor);
CREATE INDEX feedback_of_namespace ON feedback (namespace_id, created_at);

-- Reports that a search did not find a memory, which was added then or was there already.
CREATE TABLE missed_memories (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    memory_id    INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    context      TEXT,
    actor        TEXT NOT NULL,
    created_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX missed_memories_of_memory ON missed_memories (memory_id);

-- How often searches returned a memory; counted in memory and written in batches.
CREATE TABLE retrievals (
    memory_id INTEGER PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
    count     INTEGER NOT NULL,
    last_at   INTEGER NOT NULL
) STRICT;

-- Calls per day and operation: in total (dimension and name are empty), and by each dimension for itself.
CREATE TABLE usage_days (
    day           INTEGER NOT NULL,
    namespace     TEXT NOT NULL,
    operation     TEXT NOT NULL,
    dimension     TEXT NOT NULL,
    name          TEXT NOT NULL,
    calls         INTEGER NOT NULL,
    input_tokens  INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (day, namespace, operation, dimension, name)
) STRICT, WITHOUT ROWID;

-- The feed of changes, in the order of their commits, without stored text.
CREATE TABLE events (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    type         TEXT NOT NULL,
    at           INTEGER NOT NULL,
    source       TEXT,
    data         TEXT NOT NULL CHECK (json_valid(data))
) STRICT;
CREATE INDEX events_of_namespace ON events (namespace_id, id);

CREATE TABLE webhooks (
    id            TEXT PRIMARY KEY,
    namespace_id  INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    url           TEXT NOT NULL,
    events        TEXT NOT NULL CHECK (json_valid(events)),
    secret        TEXT NOT NULL,
    actor         TEXT NOT NULL,
    sources       TEXT CHECK (sources IS NULL OR json_valid(sources)),
    created_at    INTEGER NOT NULL,
    last_event_id INTEGER NOT NULL,
    disabled_at   INTEGER,
    reason        TEXT
) STRICT, WITHOUT ROWID;

CREATE TABLE webhook_deliveries (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    webhook_id      TEXT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    event_id        INTEGER NOT NULL,
    status          TEXT NOT NULL CHECK (status IN ('waiting', 'delivered', 'failed')),
    attempts        INTEGER NOT NULL,
    response_status INTEGER,
    error           TEXT,
    next_attempt_at INTEGER,
    created_at      INTEGER NOT NULL,
    finished_at     INTEGER
) STRICT;
CREATE INDEX webhook_deliveries_of_webhook ON webhook_deliveries (webhook_id, id);

CREATE TABLE feedback_checksums (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;
INSERT INTO feedback_checksums SELECT t.id AS id, row_checksum(CAST(concat_ws(x'1f', t.id, t.namespace_id, t.memory_id, t.useful, t.query, t.search_id, t.actor, t.created_at) AS BLOB)) AS checksum FROM feedback t;
CREATE TRIGGER feedback_checksum_added AFTER INSERT ON feedback BEGIN
    INSERT OR REPLACE INTO feedback_checksums VALUES (NEW.id, row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.memory_id, NEW.useful, NEW.query, NEW.search_id, NEW.actor, NEW.created_at) AS BLOB)));
END;
CREATE TRIGGER feedback_checksum_changed AFTER UPDATE OF id, namespace_id, memory_id, useful, query, search_id, actor, created_at ON feedback BEGIN
    UPDATE OR REPLACE feedback_checksums SET id = NEW.id, checksum = checksum
        + row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.memory_id, NEW.useful, NEW.query, NEW.search_id, NEW.actor, NEW.created_at) AS BLOB))
        - row_checksum(CAST(concat_ws(x'1f', OLD.id, OLD.namespace_id, OLD.memory_id, OLD.useful, OLD.query, OLD.search_id, OLD.actor, OLD.created_at) AS BLOB))
    WHERE id = OLD.id;
END;
CREATE TRIGGER feedback_checksum_deleted AFTER DELETE ON feedback BEGIN
    DELETE FROM feedback_checksums WHERE id = OLD.id;
END;

CREATE TABLE missed_memories_checksums (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;
INSERT INTO missed_memories_checksums SELECT t.id AS id, row_checksum(CAST(concat_ws(x'1f', t.id, t.namespace_id, t.memory_id, t.context, t.actor, t.created_at) AS BLOB)) AS checksum FROM missed_memories t;
CREATE TRIGGER missed_memories_checksum_added AFTER INSERT ON missed_memories BEGIN
    INSERT OR REPLACE INTO missed_memories_checksums VALUES (NEW.id, row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.memory_id, NEW.context, NEW.actor, NEW.created_at) AS BLOB)));
END;
CREATE TRIGGER missed_memories_checksum_changed AFTER UPDATE OF id, namespace_id, memory_id, context, actor, created_at ON missed_memories BEGIN
    UPDATE OR REPLACE missed_memories_checksums SET id = NEW.id, checksum = checksum
        + row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.memory_id, NEW.context, NEW.actor, NEW.created_at) AS BLOB))
        - row_checksum(CAST(concat_ws(x'1f', OLD.id, OLD.namespace_id, OLD.memory_id, OLD.context, OLD.actor, OLD.created_at) AS BLOB))
    WHERE id = OLD.id;
END;
CREATE TRIGGER missed_memories_checksum_deleted AFTER DELETE ON missed_memories BEGIN
    DELETE FROM missed_memories_checksums WHERE id = OLD.id;
END;
