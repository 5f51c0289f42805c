-- The changes of each write to the search indexes of its namespace, by which an index that is behind catches up without
-- comparing all passages. Ids only, as JSON arrays: passages that were added or removed or got token vectors, and owners
-- whose passages got other filter attributes.
CREATE TABLE index_changes (
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    change_seq   INTEGER NOT NULL,
    kind         TEXT NOT NULL,
    passage_ids  TEXT NOT NULL,
    owner_ids    TEXT NOT NULL,
    checksum     INTEGER NOT NULL,
    PRIMARY KEY (namespace_id, change_seq, kind)
) STRICT, WITHOUT ROWID;

-- The write after which the changes of a kind are complete, if earlier ones are not kept.
CREATE TABLE trimmed_index_changes (
    namespace_id   INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    kind           TEXT NOT NULL,
    complete_after INTEGER NOT NULL,
    PRIMARY KEY (namespace_id, kind)
) STRICT, WITHOUT ROWID;
INSERT INTO trimmed_index_changes
SELECT id, kind, change_seq FROM namespaces, (SELECT 'memory' AS kind UNION SELECT 'message' UNION SELECT 'concept');

-- The digests of places are of another function now, so readers of events with former ones must load everything again.
INSERT OR REPLACE INTO forgotten_events
SELECT namespace_id, max(id) FROM events WHERE places IS NOT NULL GROUP BY namespace_id;
DELETE FROM events WHERE id <= (SELECT last_id FROM forgotten_events f WHERE f.namespace_id = events.namespace_id);
