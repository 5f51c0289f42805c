ALTER TABLE claims ADD COLUMN memory_id BIGINT REFERENCES memories (id) ON DELETE CASCADE;
ALTER TABLE claims ADD COLUMN other_memory_id BIGINT REFERENCES memories (id) ON DELETE CASCADE;
CREATE INDEX claims_by_memory ON claims (memory_id) WHERE memory_id IS NOT NULL;
CREATE INDEX claims_by_other_memory ON claims (other_memory_id) WHERE other_memory_id IS NOT NULL;

INSERT INTO unread (namespace_id, kind, owner_id)
SELECT m.namespace_id, 'memory', m.id FROM memories m JOIN agents a ON a.namespace_id = m.namespace_id
WHERE m.archived = 0 AND m.key IS NOT NULL AND (m.source = 'entities' OR substr(m.source, length(m.source) - 8) = '/entities')
AND NOT EXISTS (SELECT 1 FROM unread u WHERE u.kind = 'memory' AND u.owner_id = m.id) ORDER BY m.id;

CREATE TABLE topic_segments (
    session_id     BIGINT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    first_position BIGINT NOT NULL,
    last_position  BIGINT NOT NULL,
    topic_id       BIGINT NOT NULL REFERENCES topics (id) ON DELETE CASCADE,
    messages       BIGINT NOT NULL,
    first_at       BIGINT NOT NULL,
    last_at        BIGINT NOT NULL,
    relevance      DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (session_id, first_position)
);
CREATE INDEX topic_segments_by_topic ON topic_segments (topic_id, session_id, messages, first_at, last_at);
INSERT INTO topic_segments
SELECT t.session_id, min(m.position), max(m.position), min(t.topic_id), count(*), min(m.created_at), max(m.created_at),
    min(t.relevance)
FROM session_topics t JOIN messages m ON m.session_id = t.session_id WHERE t.is_primary = 1 GROUP BY t.session_id;
DROP TABLE session_topics;

CREATE TABLE topic_sentences (
    topic_id   BIGINT NOT NULL REFERENCES topics (id) ON DELETE CASCADE,
    ordinal    BIGINT NOT NULL,
    message_id BIGINT NOT NULL REFERENCES messages (id) ON DELETE CASCADE,
    start      BIGINT NOT NULL,
    length     BIGINT NOT NULL,
    PRIMARY KEY (topic_id, ordinal)
);
CREATE INDEX topic_sentences_by_message ON topic_sentences (message_id);
CREATE FUNCTION topic_sentence_edited() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM topic_sentences WHERE message_id = NEW.id;
    RETURN NULL;
END $$;
CREATE TRIGGER topic_sentence_edited AFTER UPDATE OF content ON messages FOR EACH ROW
    EXECUTE FUNCTION topic_sentence_edited();

DELETE FROM unsorted;
INSERT INTO unsorted (session_id, namespace_id)
SELECT s.id, s.namespace_id FROM sessions s JOIN agents a USING (namespace_id) ORDER BY s.id;
