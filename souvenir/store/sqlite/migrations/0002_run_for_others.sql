-- Who may ask. Only the SHA-256 of a key is kept. `namespace` NULL is any; `prefixes` is a JSON list of source paths,
-- empty for every source.
CREATE TABLE api_keys (
    id           TEXT PRIMARY KEY,
    name         TEXT NOT NULL,
    principal_id TEXT,
    key_hash     TEXT NOT NULL UNIQUE,
    key_prefix   TEXT NOT NULL,
    role         TEXT NOT NULL CHECK (role IN ('read-only', 'read-write', 'admin')),
    namespace    TEXT,
    prefixes     TEXT NOT NULL CHECK (json_valid(prefixes)),
    created_at   INTEGER NOT NULL,
    last_used_at INTEGER,
    usage_count  INTEGER NOT NULL DEFAULT 0,
    revoked_at   INTEGER
) STRICT, WITHOUT ROWID;

-- Long work. `scope` is what its caller may see, `state` what it needs to go on after a kill.
CREATE TABLE jobs (
    id               TEXT PRIMARY KEY,
    kind             TEXT NOT NULL,
    namespace        TEXT NOT NULL,
    actor            TEXT NOT NULL,
    sources          TEXT CHECK (sources IS NULL OR json_valid(sources)),
    status           TEXT NOT NULL CHECK (status IN ('queued', 'running', 'completed', 'failed', 'cancelled')),
    parameters       TEXT NOT NULL CHECK (json_valid(parameters)),
    state            TEXT NOT NULL CHECK (json_valid(state)),
    done             INTEGER NOT NULL DEFAULT 0,
    total            INTEGER,
    result           TEXT CHECK (result IS NULL OR json_valid(result)),
    error            TEXT,
    cancel_requested INTEGER NOT NULL DEFAULT 0 CHECK (cancel_requested IN (0, 1)),
    created_at       INTEGER NOT NULL,
    started_at       INTEGER,
    finished_at      INTEGER
) STRICT, WITHOUT ROWID;
CREATE INDEX jobs_by_time ON jobs (created_at);

-- Which memory stands for an id of an import's file, while it runs; `added` if it was not there before.
CREATE TABLE import_ids (
    job_id TEXT NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    old_id INTEGER NOT NULL,
    new_id INTEGER NOT NULL,
    added  INTEGER NOT NULL CHECK (added IN (0, 1)),
    PRIMARY KEY (job_id, old_id)
) STRICT, WITHOUT ROWID;

-- What was asked for and is no change of a memory (those are in history): denied requests, and what admins did. A row
-- stands for `count` equal requests.
CREATE TABLE audit_events (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    at          INTEGER NOT NULL,
    action      TEXT NOT NULL,
    actor       TEXT NOT NULL,
    namespace   TEXT,
    resource_id TEXT,
    method      TEXT,
    route       TEXT,
    status      INTEGER,
    address     TEXT,
    count       INTEGER NOT NULL DEFAULT 1,
    detail      TEXT
) STRICT;
CREATE INDEX audit_events_by_time ON audit_events (at);
CREATE INDEX history_by_time ON history (at);

-- A passage has one vector a model, so that those of a new model grow beside the old ones.
CREATE TABLE vectors_by_model (
    passage_id INTEGER NOT NULL REFERENCES passages (id) ON DELETE CASCADE,
    model_id   TEXT NOT NULL,
    vector     BLOB NOT NULL,
    PRIMARY KEY (passage_id, model_id)
) STRICT;
INSERT INTO vectors_by_model SELECT passage_id, model_id, vector FROM vectors ORDER BY passage_id;
DROP TABLE vectors;
ALTER TABLE vectors_by_model RENAME TO vectors;
