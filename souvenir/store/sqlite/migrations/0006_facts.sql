-- The atomic statements of a memory, in their order; `made_by` says who split it. One that says just what its memory says
-- has no passages of its own.
CREATE TABLE facts (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    memory_id    INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    ordinal      INTEGER NOT NULL,
    text         TEXT NOT NULL,
    made_by      TEXT NOT NULL CHECK (made_by IN ('caller', 'model', 'sentences')),
    created_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX facts_by_memory ON facts (memory_id, ordinal);
CREATE INDEX facts_by_namespace ON facts (namespace_id);

-- A passage of a fact is one of its memory's: found with it, and filtered by the same.
ALTER TABLE passages ADD COLUMN fact_id INTEGER;

-- Tags as they were given, and folded as they are matched. `added_at` is when the memory got it.
CREATE TABLE memory_tags (
    memory_id    INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    folded       TEXT NOT NULL,
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    tag          TEXT NOT NULL,
    added_at     INTEGER NOT NULL,
    PRIMARY KEY (memory_id, folded)
) STRICT, WITHOUT ROWID;
CREATE INDEX memory_tags_by_tag ON memory_tags (namespace_id, folded, memory_id);

-- Memories that are to be split later: no model answered, or their text changed since.
CREATE TABLE unsplit (
    memory_id    INTEGER PRIMARY KEY REFERENCES memories (id) ON DELETE CASCADE,
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    since        INTEGER NOT NULL
) STRICT;
CREATE INDEX unsplit_by_namespace ON unsplit (namespace_id);
