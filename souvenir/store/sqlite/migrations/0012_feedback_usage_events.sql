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

-- Calls per day (days since 1970, UTC), namespace and operation: in total (dimension and name are empty), and by each
-- dimension for itself. The cost is null where the price of a model is unknown.
CREATE TABLE usage_days (
    day           INTEGER NOT NULL,
    namespace     TEXT NOT NULL,
    dimension     TEXT NOT NULL,
    operation     TEXT NOT NULL,
    name          TEXT NOT NULL,
    calls         INTEGER NOT NULL,
    input_tokens  INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cost_usd      REAL DEFAULT 0,
    PRIMARY KEY (day, namespace, dimension, operation, name)
) STRICT, WITHOUT ROWID;
-- A namespace is renamed when its removal starts.
CREATE TRIGGER usage_of_renamed AFTER UPDATE OF name ON namespaces WHEN NEW.name IS NOT OLD.name BEGIN
    DELETE FROM usage_days WHERE namespace = OLD.name;
END;
CREATE TRIGGER usage_of_deleted AFTER DELETE ON namespaces BEGIN
    DELETE FROM usage_days WHERE namespace = OLD.name;
END;

-- The feed of changes, in the order of their commits, without stored text (`souvenir.store.admin.events`). `memory_id` is
-- the changed memory, and `history_id` the entry of the change, or the last one of all before the deletion. `places` are
-- digests of the paths that a source was in which the memory is not in any more. `actor` is that of a job.
CREATE TABLE events (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    type         TEXT NOT NULL,
    at           INTEGER NOT NULL DEFAULT (CAST(unixepoch('subsec') * 1000000 AS INTEGER)),
    memory_id    INTEGER,
    history_id   INTEGER,
    data         TEXT CHECK (data IS NULL OR json_valid(data)),
    places       BLOB,
    actor        TEXT
) STRICT;
CREATE INDEX events_of_namespace ON events (namespace_id, id);

-- The id up to which the events of a namespace are not kept, or were those of another namespace of its name.
CREATE TABLE forgotten_events (
    namespace_id INTEGER PRIMARY KEY REFERENCES namespaces (id) ON DELETE CASCADE,
    last_id      INTEGER NOT NULL
) STRICT;
CREATE TRIGGER namespace_feed AFTER INSERT ON namespaces BEGIN
    INSERT INTO forgotten_events
    VALUES (NEW.id, coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events'), 0));
END;

CREATE TRIGGER memory_event AFTER INSERT ON history WHEN NEW.after IS NOT NULL AND NEW.imported = 0 BEGIN
    INSERT INTO events (namespace_id, type, at, memory_id, history_id, places)
    VALUES (
        NEW.namespace_id,
        CASE WHEN NEW.before IS NULL THEN 'memory.added'
            WHEN (NEW.after ->> 'archived') > (NEW.before ->> 'archived') THEN 'memory.archived'
            ELSE 'memory.updated' END,
        NEW.at, NEW.memory_id, NEW.id,
        CASE WHEN NEW.before IS NOT NULL AND (NEW.after ->> 'source') <> (NEW.before ->> 'source')
            THEN place_digests(CAST(NEW.before ->> 'source' AS BLOB)) END
    );
END;
-- A namespace whose name begins with / is being removed with everything in it.
CREATE TRIGGER memory_deletion_event AFTER DELETE ON memories BEGIN
    INSERT INTO events (namespace_id, type, memory_id, history_id, places)
    SELECT id, 'memory.deleted', OLD.id, (SELECT seq FROM sqlite_sequence WHERE name = 'history'),
        place_digests(CAST(OLD.source AS BLOB))
    FROM namespaces WHERE id = OLD.namespace_id AND substr(name, 1, 1) <> '/';
END;
-- A conflict is open between two active memories.
CREATE TRIGGER conflict_event AFTER UPDATE OF archived ON memories WHEN NEW.archived <> OLD.archived BEGIN
    INSERT INTO events (namespace_id, type, data)
    SELECT NEW.namespace_id, iif(NEW.archived, 'conflict.resolved', 'conflict.found'),
        json_object('id', l.from_id, 'conflicts_with', l.to_id)
    FROM links l JOIN memories o ON o.id = iif(l.from_id = NEW.id, l.to_id, l.from_id)
    WHERE (l.from_id = NEW.id OR l.to_id = NEW.id) AND l.type = 'conflicts_with' AND o.archived = 0;
END;
CREATE TRIGGER link_event AFTER INSERT ON links BEGIN
    INSERT INTO events (namespace_id, type, data)
    SELECT f.namespace_id, iif(NEW.type = 'conflicts_with', 'conflict.found', 'memory.linked'),
        iif(NEW.type = 'conflicts_with', json_object('id', NEW.from_id, 'conflicts_with', NEW.to_id),
            json_object('from_id', NEW.from_id, 'to_id', NEW.to_id,
                'type', iif(substr(NEW.type, 1, 9) = 'relation/', 'relation', NEW.type)))
    FROM memories f JOIN memories t ON t.id = NEW.to_id
    WHERE f.id = NEW.from_id AND (NEW.type <> 'conflicts_with' OR (f.archived = 0 AND t.archived = 0));
END;
CREATE TRIGGER link_deletion_event AFTER DELETE ON links BEGIN
    INSERT INTO events (namespace_id, type, data)
    SELECT n.id, iif(OLD.type = 'conflicts_with', 'conflict.resolved', 'memory.unlinked'),
        iif(OLD.type = 'conflicts_with', json_object('id', OLD.from_id, 'conflicts_with', OLD.to_id),
            json_object('from_id', OLD.from_id, 'to_id', OLD.to_id,
                'type', iif(substr(OLD.type, 1, 9) = 'relation/', 'relation', OLD.type)))
    FROM memories f JOIN memories t ON t.id = OLD.to_id JOIN namespaces n ON n.id = f.namespace_id
    WHERE f.id = OLD.from_id AND substr(n.name, 1, 1) <> '/'
        AND (OLD.type <> 'conflicts_with' OR (f.archived = 0 AND t.archived = 0));
END;

CREATE TRIGGER message_event AFTER INSERT ON messages BEGIN
    INSERT INTO events (namespace_id, type, data)
    VALUES (NEW.namespace_id, 'message.added', json_object('id', NEW.uid));
END;
CREATE TRIGGER message_change_event AFTER UPDATE OF content, metadata ON messages BEGIN
    INSERT INTO events (namespace_id, type, data)
    VALUES (NEW.namespace_id, 'message.updated', json_object('id', NEW.uid));
END;
CREATE TRIGGER message_deletion_event AFTER DELETE ON messages BEGIN
    INSERT INTO events (namespace_id, type, data)
    SELECT id, 'message.deleted', json_object('id', iif(OLD.uid GLOB '*[^ -~]*', NULL, OLD.uid)) FROM namespaces
    WHERE id = OLD.namespace_id AND substr(name, 1, 1) <> '/';
END;
CREATE TRIGGER block_event AFTER INSERT ON blocks BEGIN
    INSERT INTO events (namespace_id, type, data)
    VALUES (NEW.namespace_id, 'block.added', json_object('id', NEW.uid, 'version', NEW.version));
END;
CREATE TRIGGER block_change_event AFTER UPDATE OF version ON blocks BEGIN
    INSERT INTO events (namespace_id, type, data)
    VALUES (NEW.namespace_id, 'block.updated', json_object('id', NEW.uid, 'version', NEW.version));
END;
CREATE TRIGGER block_deletion_event AFTER DELETE ON blocks BEGIN
    INSERT INTO events (namespace_id, type, data)
    SELECT id, 'block.deleted', json_object('id', iif(OLD.uid GLOB '*[^ -~]*', NULL, OLD.uid)) FROM namespaces
    WHERE id = OLD.namespace_id AND substr(name, 1, 1) <> '/';
END;

-- A job can be the first thing in its namespace. One that covers the whole store names a namespace without using it.
CREATE TRIGGER job_event AFTER INSERT ON jobs BEGIN
    INSERT INTO namespaces (name, created_at, changed_at)
    SELECT NEW.namespace, NEW.created_at, NEW.created_at WHERE NEW.kind NOT IN ('erase', 'reembed')
    ON CONFLICT (name) DO NOTHING;
    INSERT INTO events (namespace_id, type, data, actor)
    SELECT id, iif(NEW.kind = 'extract', 'extraction.', 'job.') || NEW.status,
        json_object('job_id', NEW.id, 'kind', NEW.kind), NEW.actor
    FROM namespaces WHERE name = NEW.namespace;
END;
-- A job that is tried again, or goes on after a restart, is neither queued nor started again.
CREATE TRIGGER job_change_event AFTER UPDATE OF status ON jobs
WHEN NEW.status <> OLD.status AND CASE NEW.status WHEN 'queued' THEN OLD.finished_at IS NOT NULL
    WHEN 'running' THEN OLD.started_at IS NULL ELSE TRUE END
BEGIN
    INSERT INTO events (namespace_id, type, data, actor)
    SELECT id,
        iif(NEW.kind = 'extract', 'extraction.', 'job.') || iif(NEW.status = 'running', 'started', NEW.status),
        iif(NEW.kind = 'extract' AND NEW.status = 'completed',
            json_object('job_id', NEW.id, 'kind', NEW.kind, 'extracted_count', NEW.result -> 'extracted_count',
                'stored_count', NEW.result -> 'stored_count', 'updated_count', NEW.result -> 'updated_count',
                'deleted_count', NEW.result -> 'deleted_count'),
            json_object('job_id', NEW.id, 'kind', NEW.kind)),
        NEW.actor
    FROM namespaces WHERE name = NEW.namespace;
END;

CREATE TABLE webhooks (
    id            TEXT PRIMARY KEY,
    namespace_id  INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    url           TEXT NOT NULL,
    events        TEXT NOT NULL CHECK (json_valid(events)),
    secret        TEXT NOT NULL,
    actor         TEXT NOT NULL,
    created_at    INTEGER NOT NULL,
    last_event_id INTEGER NOT NULL,
    failures      INTEGER NOT NULL DEFAULT 0,
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

CREATE TABLE webhooks_checksums (id INTEGER PRIMARY KEY, checksum INTEGER NOT NULL) STRICT;
INSERT INTO webhooks_checksums SELECT 0 AS id, sum(row_checksum(CAST(concat_ws(x'1f', t.id, t.namespace_id, t.url, t.events, t.secret, t.actor, t.created_at) AS BLOB))) AS checksum FROM webhooks t GROUP BY 1;
CREATE TRIGGER webhooks_checksum_added AFTER INSERT ON webhooks BEGIN
    INSERT INTO webhooks_checksums VALUES (0, row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.url, NEW.events, NEW.secret, NEW.actor, NEW.created_at) AS BLOB)))
    ON CONFLICT (id) DO UPDATE SET checksum = checksum + excluded.checksum;
END;
CREATE TRIGGER webhooks_checksum_changed AFTER UPDATE OF id, namespace_id, url, events, secret, actor, created_at ON webhooks BEGIN
    UPDATE webhooks_checksums SET checksum = checksum
        - row_checksum(CAST(concat_ws(x'1f', OLD.id, OLD.namespace_id, OLD.url, OLD.events, OLD.secret, OLD.actor, OLD.created_at) AS BLOB))
    WHERE id = 0;
    DELETE FROM webhooks_checksums WHERE id = 0 AND NOT EXISTS (SELECT 1 FROM webhooks t WHERE 0 = 0);
    INSERT INTO webhooks_checksums VALUES (0, row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.url, NEW.events, NEW.secret, NEW.actor, NEW.created_at) AS BLOB)))
    ON CONFLICT (id) DO UPDATE SET checksum = checksum + excluded.checksum;
END;
CREATE TRIGGER webhooks_checksum_deleted AFTER DELETE ON webhooks BEGIN
    UPDATE webhooks_checksums SET checksum = checksum
        - row_checksum(CAST(concat_ws(x'1f', OLD.id, OLD.namespace_id, OLD.url, OLD.events, OLD.secret, OLD.actor, OLD.created_at) AS BLOB))
    WHERE id = 0;
    DELETE FROM webhooks_checksums WHERE id = 0 AND NOT EXISTS (SELECT 1 FROM webhooks t WHERE 0 = 0);
END;
