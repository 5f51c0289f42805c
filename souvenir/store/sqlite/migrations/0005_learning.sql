-- Jobs of one kind and serial key run one at a time, in the order in which they came.
ALTER TABLE jobs ADD COLUMN serial_key TEXT;
CREATE INDEX jobs_unfinished ON jobs (kind, serial_key, created_at) WHERE status IN ('queued', 'running');

-- Where a memory's text comes from, and when what it says ceased to be so.
ALTER TABLE memories ADD COLUMN origin_class TEXT NOT NULL DEFAULT 'user'
    CHECK (origin_class IN ('user', 'document', 'tool', 'assistant', 'inferred', 'recalled'));
ALTER TABLE memories ADD COLUMN valid_to INTEGER;
UPDATE memories SET valid_to = (SELECT max(created_at) FROM links WHERE to_id = id AND type = 'supersedes')
WHERE archived = 1;
CREATE INDEX history_by_job ON history (job_id) WHERE job_id IS NOT NULL;

-- What a job learns from a transcript. `transcript` is what is kept of it, without what the privacy rules take out; NULL
-- once it is forgotten. `calls` says what the model was asked and what it cost, one object a call.
CREATE TABLE extractions (
    job_id         TEXT PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
    namespace      TEXT NOT NULL,
    source         TEXT NOT NULL,
    context        TEXT NOT NULL,
    message_length INTEGER NOT NULL,
    transcript     TEXT,
    document_at    INTEGER,
    options        TEXT NOT NULL CHECK (json_valid(options)),
    phase          TEXT NOT NULL CHECK (phase IN ('proposing', 'deciding', 'decided', 'applied', 'undone')),
    calls          TEXT NOT NULL CHECK (json_valid(calls))
) STRICT, WITHOUT ROWID;
CREATE INDEX extractions_by_namespace ON extractions (namespace);

-- The ledger: each fact that a model proposed, what was decided about it, and what came of that. A row is blanked when
-- the memory that it made or touched is forgotten.
CREATE TABLE extraction_facts (
    job_id    TEXT NOT NULL REFERENCES extractions (job_id) ON DELETE CASCADE,
    ordinal   INTEGER NOT NULL,
    stage     TEXT NOT NULL CHECK (stage IN ('proposed', 'decided', 'applied', 'skipped', 'failed', 'undone')),
    proposal  TEXT CHECK (proposal IS NULL OR json_valid(proposal)),
    decision  TEXT CHECK (decision IS NULL OR json_valid(decision)),
    outcome   TEXT CHECK (outcome IS NULL OR json_valid(outcome)),
    memory_id INTEGER,
    target_id INTEGER,
    PRIMARY KEY (job_id, ordinal)
) STRICT, WITHOUT ROWID;
CREATE INDEX extraction_facts_by_memory ON extraction_facts (memory_id) WHERE memory_id IS NOT NULL;
CREATE INDEX extraction_facts_by_target ON extraction_facts (target_id) WHERE target_id IS NOT NULL;

-- How memories of the sources below a prefix are extracted and kept.
CREATE TABLE extraction_profiles (
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    prefix       TEXT NOT NULL,
    fields       TEXT NOT NULL CHECK (json_valid(fields)),
    updated_at   INTEGER NOT NULL,
    PRIMARY KEY (namespace_id, prefix)
) STRICT, WITHOUT ROWID;

-- With whom, or in which session, a memory was learned, by the names that callers use: what is forgotten with them.
CREATE TABLE learned_with (
    kind      TEXT NOT NULL CHECK (kind IN ('user', 'session')),
    name      TEXT NOT NULL,
    memory_id INTEGER NOT NULL REFERENCES memories (id) ON DELETE CASCADE,
    PRIMARY KEY (kind, name, memory_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX learned_with_by_memory ON learned_with (memory_id);
