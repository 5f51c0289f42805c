-- Processes that share a database in PostgreSQL. A file has one process, so the table is empty here, and every job that
-- is running when it opens is of an earlier process.
CREATE TABLE replicas (
    id      TEXT PRIMARY KEY,
    seen_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The process that runs a job.
ALTER TABLE jobs ADD COLUMN replica TEXT;

-- The greatest ids that were ever given to rows.
CREATE VIEW issued_ids AS SELECT name, seq FROM sqlite_sequence;
