-- The runs of the writer, with the numbers of their commits; together they are the history of the database. A copy of
-- the database that is written to elsewhere, or put back, continues with another generation.
CREATE TABLE generations (
    id           TEXT PRIMARY KEY,
    first_commit INTEGER NOT NULL UNIQUE,
    last_commit  INTEGER NOT NULL CHECK (last_commit >= first_commit)
) STRICT, WITHOUT ROWID;
INSERT INTO generations VALUES (lower(hex(randomblob(16))), 1, 1);
DELETE FROM meta WHERE key = 'lineage';

-- Losses that an operator has not accepted yet.
CREATE TABLE incidents (
    id      INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    code    TEXT NOT NULL,
    message TEXT NOT NULL
) STRICT;
