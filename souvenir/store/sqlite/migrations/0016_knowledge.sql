-- Runs of messages of a session on one subject, by their positions. A session had one topic, and others that are similar.
CREATE TABLE topic_segments (
    session_id     INTEGER NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    first_position INTEGER NOT NULL,
    last_position  INTEGER NOT NULL,
    topic_id       INTEGER NOT NULL REFERENCES topics (id) ON DELETE CASCADE,
    messages       INTEGER NOT NULL,
    first_at       INTEGER NOT NULL,
    last_at        INTEGER NOT NULL,
    relevance      REAL NOT NULL,
    PRIMARY KEY (session_id, first_position)
) STRICT, WITHOUT ROWID;
CREATE INDEX topic_segments_by_topic ON topic_segments (topic_id, session_id, messages, first_at, last_at);
INSERT INTO topic_segments
SELECT t.session_id, min(m.position), max(m.position), min(t.topic_id), count(*), min(m.created_at), max(m.created_at),
    min(t.relevance)
FROM session_topics t JOIN messages m ON m.session_id = t.session_id WHERE t.is_primary = 1 GROUP BY t.session_id;
DROP TABLE session_topics;

-- The summary of a topic to which none was stated: places of sentences, in characters. An edited message has none.
CREATE TABLE topic_sentences (
    topic_id   INTEGER NOT NULL REFERENCES topics (id) ON DELETE CASCADE,
    ordinal    INTEGER NOT NULL,
    message_id INTEGER NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    start      INTEGER NOT NULL,
    length     INTEGER NOT NULL,
    PRIMARY KEY (topic_id, ordinal)
) STRICT, WITHOUT ROWID;
CREATE INDEX topic_sentences_by_message ON topic_sentences (message_id);
CREATE TRIGGER topic_sentence_edited AFTER UPDATE OF content ON messages BEGIN
    DELETE FROM topic_sentences WHERE message_id = NEW.id;
END;

DELETE FROM unsorted;
INSERT INTO unsorted (session_id, namespace_id)
SELECT s.id, s.namespace_id FROM sessions s JOIN agents a USING (namespace_id) ORDER BY s.id;
