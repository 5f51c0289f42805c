ALTER TABLE claims ADD COLUMN memory_id BIGINT REFERENCES memories (id) ON DELETE CASCADE;
ALTER TABLE claims ADD COLUMN other_memory_id BIGINT REFERENCES memories (id) ON DELETE CASCADE;
CREATE INDEX claims_by_memory ON claims (memory_id) WHERE memory_id IS NOT NULL;
CREATE INDEX claims_by_other_memory ON claims (other_memory_id) WHERE other_memory_id IS NOT NULL;

INSERT INTO unread (namespace_id, kind, owner_id)
SELECT m.namespace_id, 'memory', m.id FROM memories m JOIN agents a ON a.namespace_id = m.namespace_id
WHERE m.archived = 0 AND m.key IS NOT NULL AND (m.source = 'entities' OR substr(m.source, length(m.source) - 8) = '/entities')
AND NOT EXISTS (SELECT 1 FROM unread u WHERE u.kind = 'memory' AND u.owner_id = m.id) ORDER BY m.id;
