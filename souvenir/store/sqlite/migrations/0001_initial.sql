-- Times are microseconds since 1970 in UTC. Ids come from AUTOINCREMENT and are never used twice.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE namespaces (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    name       TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    change_seq INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE memories (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    text         TEXT NOT NULL,
    source       TEXT NOT NULL,
    key          TEXT,
    metadata     TEXT NOT NULL CHECK (json_valid(metadata)),
    document_at  INTEGER,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    pinned       INTEGER NOT NULL CHECK (pinned IN (0, 1)),
    archived     INTEGER NOT NULL CHECK (archived IN (0, 1))
) STRICT;
CREATE INDEX memories_by_namespace ON memories (namespace_id);
CREATE INDEX memories_by_source ON memories (namespace_id, source);
CREATE UNIQUE INDEX memories_by_key ON memories (namespace_id, source, key) WHERE key IS NOT NULL AND archived = 0;

CREATE TABLE links (
    from_id    INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    to_id      INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    type       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (from_id, to_id, type)
) STRICT, WITHOUT ROWID;
CREATE INDEX links_by_target ON links (to_id, type);

-- What is embedded and searched. A passage is never changed: a new text makes new passages. source, occurred_at and
-- archived repeat what their owner says, so that an index is loaded from this table alone whatever the owner is.
CREATE TABLE passages (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    kind         TEXT NOT NULL,
    owner_id     INTEGER NOT NULL,
    ordinal      INTEGER NOT NULL,
    text         TEXT NOT NULL,
    profile      INTEGER NOT NULL,
    source       TEXT NOT NULL,
    occurred_at  INTEGER NOT NULL,
    archived     INTEGER NOT NULL CHECK (archived IN (0, 1)),
    UNIQUE (kind, owner_id, ordinal)
) STRICT;
CREATE INDEX passages_by_namespace ON passages (namespace_id);

CREATE TABLE vectors (
    passage_id INTEGER PRIMARY KEY REFERENCES passages (id) ON DELETE CASCADE,
    model_id   TEXT NOT NULL,
    vector     BLOB NOT NULL
) STRICT;

-- Every change of a memory. Deleting a memory empties before and after of its rows: what is forgotten stays forgotten.
CREATE TABLE history (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    memory_id    INTEGER NOT NULL,
    action       TEXT NOT NULL,
    actor        TEXT NOT NULL,
    job_id       TEXT,
    at           INTEGER NOT NULL,
    before       TEXT,
    after        TEXT
) STRICT;
CREATE INDEX history_by_memory ON history (memory_id);
