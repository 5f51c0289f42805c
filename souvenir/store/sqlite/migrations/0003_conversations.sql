-- An agent is a namespace that conversations belong to. `policy` holds what its privacy does otherwise than the rules say.
CREATE TABLE agents (
    namespace_id INTEGER PRIMARY KEY REFERENCES namespaces (id) ON DELETE CASCADE,
    uid          TEXT NOT NULL UNIQUE,
    metadata     TEXT CHECK (metadata IS NULL OR json_valid(metadata)),
    policy       TEXT NOT NULL CHECK (json_valid(policy)),
    created_at   INTEGER NOT NULL
) STRICT;

-- Whom an agent talks with. `name` is what callers call them.
CREATE TABLE users (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    name         TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    UNIQUE (namespace_id, name)
) STRICT;

-- `name` is the id that callers give or get; `implicit` ones were made because a caller named none. What was said before
-- the position `window_from` is not in the context of the running conversation any more.
CREATE TABLE sessions (
    id              INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace_id    INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    name            TEXT NOT NULL,
    user_id         INTEGER REFERENCES users (id) ON DELETE SET NULL,
    title           TEXT,
    metadata        TEXT CHECK (metadata IS NULL OR json_valid(metadata)),
    implicit        INTEGER NOT NULL CHECK (implicit IN (0, 1)),
    started_at      INTEGER NOT NULL,
    last_message_at INTEGER,
    ended_at        INTEGER,
    next_position   INTEGER NOT NULL DEFAULT 0,
    window_from     INTEGER NOT NULL DEFAULT 0,
    UNIQUE (namespace_id, name)
) STRICT;
CREATE INDEX sessions_by_time ON sessions (namespace_id, started_at);
CREATE INDEX sessions_by_user ON sessions (user_id);
CREATE INDEX sessions_running ON sessions (namespace_id, user_id, last_message_at) WHERE implicit = 1 AND ended_at IS NULL;

-- `position` counts within the session in the order of storing, and never goes back. `created_at` is when it was said. One
-- that is not `indexed` has no passages yet, and gets them when its session ends at the latest.
CREATE TABLE messages (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    uid          TEXT NOT NULL UNIQUE,
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    session_id   INTEGER NOT NULL REFERENCES sessions (id),
    position     INTEGER NOT NULL,
    role         TEXT NOT NULL CHECK (role IN ('user', 'assistant', 'system')),
    content      TEXT NOT NULL,
    user_id      INTEGER REFERENCES users (id),
    speaker      TEXT,
    metadata     TEXT CHECK (metadata IS NULL OR json_valid(metadata)),
    created_at   INTEGER NOT NULL,
    edited_at    INTEGER,
    indexed      INTEGER NOT NULL CHECK (indexed IN (0, 1)),
    UNIQUE (session_id, position)
) STRICT;
CREATE INDEX messages_by_time ON messages (namespace_id, created_at, id);
CREATE INDEX messages_by_user ON messages (user_id);
CREATE INDEX messages_to_index ON messages (namespace_id, session_id) WHERE indexed = 0;
CREATE INDEX messages_flagged ON messages (namespace_id) WHERE json_extract(metadata, '$.sensitive_topics') IS NOT NULL;
CREATE INDEX memories_flagged ON memories (namespace_id) WHERE json_extract(metadata, '$.sensitive_topics') IS NOT NULL;

-- Labelled text that is always in context. `max_chars` bounds the value; `version` counts its changes from 1.
CREATE TABLE blocks (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    uid          TEXT NOT NULL UNIQUE,
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    label        TEXT NOT NULL,
    value        TEXT NOT NULL,
    description  TEXT,
    max_chars    INTEGER NOT NULL,
    read_only    INTEGER NOT NULL CHECK (read_only IN (0, 1)),
    version      INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    UNIQUE (namespace_id, label)
) STRICT;

-- What a block was in each version, the present one included.
CREATE TABLE block_history (
    block_id    INTEGER NOT NULL REFERENCES blocks (id) ON DELETE CASCADE,
    version     INTEGER NOT NULL,
    value       TEXT NOT NULL,
    description TEXT,
    max_chars   INTEGER NOT NULL,
    read_only   INTEGER NOT NULL,
    actor       TEXT NOT NULL,
    at          INTEGER NOT NULL,
    PRIMARY KEY (block_id, version)
) STRICT, WITHOUT ROWID;

-- What was made for an Idempotency-Key: ids only. The key and the request are kept as SHA-256.
CREATE TABLE idempotency_keys (
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    actor        TEXT NOT NULL,
    route        TEXT NOT NULL,
    key_hash     TEXT NOT NULL,
    request_hash TEXT NOT NULL,
    made         TEXT NOT NULL CHECK (json_valid(made)),
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (namespace_id, actor, route, key_hash)
) STRICT, WITHOUT ROWID;
CREATE INDEX idempotency_keys_by_time ON idempotency_keys (created_at);

-- What was erased, so that no restored backup brings it back. `kind` is a noun's, `owner_id` its id, never used again.
CREATE TABLE tombstones (
    kind      TEXT NOT NULL,
    owner_id  INTEGER NOT NULL,
    erased_at INTEGER NOT NULL,
    PRIMARY KEY (kind, owner_id)
) STRICT, WITHOUT ROWID;

-- What is being removed, part by part, and by whom (`work`): whoever starts next goes on with it.
CREATE TABLE removals (
    kind     TEXT NOT NULL,
    owner_id INTEGER NOT NULL,
    work     TEXT NOT NULL,
    PRIMARY KEY (kind, owner_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX removals_by_work ON removals (work);
CREATE INDEX history_by_namespace ON history (namespace_id);

-- Of messages: which turn of which conversation a passage is. A speaker is somebody's name, and searched with the text.
ALTER TABLE passages ADD COLUMN session_id INTEGER;
ALTER TABLE passages ADD COLUMN position INTEGER;
ALTER TABLE passages ADD COLUMN role TEXT;
ALTER TABLE passages ADD COLUMN user_id INTEGER;
ALTER TABLE passages ADD COLUMN speaker TEXT;
DROP INDEX passages_by_namespace;
CREATE INDEX passages_by_namespace ON passages (namespace_id, kind);
