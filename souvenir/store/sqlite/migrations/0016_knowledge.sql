-- Statements of messages that insights report: promises, appointments, changes and the like. Derived from the messages,
-- like mentions. `due` is the day of a promise or the new day of a change, `replaced` the day that a change replaces,
-- both as the microsecond at which it begins in UTC. `at` is when it was said.
CREATE TABLE statements (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    message_id   INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    kind         TEXT NOT NULL,
    sentence     TEXT NOT NULL,
    terms        TEXT NOT NULL,
    attribute    TEXT,
    value        TEXT,
    due          INTEGER,
    replaced     INTEGER,
    at           INTEGER NOT NULL
) STRICT;
CREATE INDEX statements_by_message ON statements (message_id);
CREATE INDEX statements_by_time ON statements (namespace_id, kind, at);
CREATE INDEX statements_by_due ON statements (namespace_id, due) WHERE due IS NOT NULL;

-- The sentence of a mention that defines its concept, where there is one. A higher quality is better; `role` is what the
-- concept is by it, such as "my boss".
CREATE TABLE definitions (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    namespace_id INTEGER NOT NULL REFERENCES namespaces (id) ON DELETE CASCADE,
    kind         TEXT NOT NULL CHECK (kind IN ('message', 'memory')),
    owner_id     INTEGER NOT NULL,
    concept_id   INTEGER NOT NULL REFERENCES concepts (id) ON DELETE CASCADE,
    sentence     TEXT NOT NULL,
    quality      INTEGER NOT NULL,
    role         TEXT,
    at           INTEGER NOT NULL,
    UNIQUE (kind, owner_id, concept_id)
) STRICT;
CREATE INDEX definitions_by_concept ON definitions (concept_id, quality, at);
CREATE INDEX definitions_by_time ON definitions (namespace_id, at) WHERE role IS NOT NULL;
