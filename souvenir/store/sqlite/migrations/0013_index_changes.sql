-- The changes of each write to the search indexes of its namespace, by which an index that is behind catches up without
-- comparing all passages. Ids only, as JSON arrays: passages that were added or removed or got token vectors, and owners
-- whose passages got other filter attributes. The log of a namespace is complete for the writes after `logged_after`.
CREATE TABLE index_changes (
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    change_seq   INTEGER NOT NULL,
    kind         TEXT NOT NULL,
    passage_ids  TEXT NOT NULL CHECK (json_valid(passage_ids)),
    owner_ids    TEXT NOT NULL CHECK (json_valid(owner_ids)),
    PRIMARY KEY (namespace_id, change_seq, kind)
) STRICT, WITHOUT ROWID;
ALTER TABLE namespaces ADD COLUMN logged_after INTEGER NOT NULL DEFAULT 0;
UPDATE namespaces SET logged_after = change_seq;

-- The digests of places are of another function now, so readers of events with former ones must load everything again.
INSERT OR REPLACE INTO forgotten_events
SELECT namespace_id, max(id) FROM events WHERE namespace_id IN (SELECT namespace_id FROM events WHERE places IS NOT NULL)
GROUP BY namespace_id;
DELETE FROM events WHERE id <= (SELECT last_id FROM forgotten_events f WHERE f.namespace_id = events.namespace_id);
