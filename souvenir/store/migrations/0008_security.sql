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
