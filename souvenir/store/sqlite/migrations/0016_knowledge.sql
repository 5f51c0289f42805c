-- Claims that an entity of the knowledge graph states: `memory_id` is the entity that states it, and `other_memory_id`
-- the entity that its relation leads to. They are derived from these memories, and go with them.
ALTER TABLE claims ADD COLUMN memory_id INTEGER REFERENCES memories (id) ON DELETE CASCADE;
ALTER TABLE claims ADD COLUMN other_memory_id INTEGER REFERENCES memories (id) ON DELETE CASCADE;
CREATE INDEX claims_by_memory ON claims (memory_id) WHERE memory_id IS NOT NULL;
CREATE INDEX claims_by_other_memory ON claims (other_memory_id) WHERE other_memory_id IS NOT NULL;

-- The checksums of claims cover both; one of nulls is as before.
DROP TRIGGER claims_checksum_added;
DROP TRIGGER claims_checksum_changed;
DROP TRIGGER claims_checksum_deleted;
CREATE TRIGGER claims_checksum_added AFTER INSERT ON claims BEGIN
    INSERT OR REPLACE INTO claims_checksums VALUES (NEW.id, row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.kind, NEW.concept_id, NEW.other_id, NEW.text, CAST(round(NEW.confidence * 1000000) AS INTEGER), NEW.made_by, NEW.message_id, NEW.job_id, NEW.created_at, NEW.memory_id, NEW.other_memory_id) AS BLOB)));
END;
CREATE TRIGGER claims_checksum_changed AFTER UPDATE OF id, namespace_id, kind, concept_id, other_id, text, confidence, made_by, message_id, job_id, created_at, memory_id, other_memory_id ON claims BEGIN
    UPDATE OR REPLACE claims_checksums SET id = NEW.id, checksum = checksum
        + row_checksum(CAST(concat_ws(x'1f', NEW.id, NEW.namespace_id, NEW.kind, NEW.concept_id, NEW.other_id, NEW.text, CAST(round(NEW.confidence * 1000000) AS INTEGER), NEW.made_by, NEW.message_id, NEW.job_id, NEW.created_at, NEW.memory_id, NEW.other_memory_id) AS BLOB))
        - row_checksum(CAST(concat_ws(x'1f', OLD.id, OLD.namespace_id, OLD.kind, OLD.concept_id, OLD.other_id, OLD.text, CAST(round(OLD.confidence * 1000000) AS INTEGER), OLD.made_by, OLD.message_id, OLD.job_id, OLD.created_at, OLD.memory_id, OLD.other_memory_id) AS BLOB))
    WHERE id = OLD.id;
END;
CREATE TRIGGER claims_checksum_deleted AFTER DELETE ON claims BEGIN
    DELETE FROM claims_checksums WHERE id = OLD.id;
END;

-- Entities of earlier releases are indexed again, with their names, types and relations.
INSERT INTO unread (namespace_id, kind, owner_id)
SELECT m.namespace_id, 'memory', m.id FROM memories m JOIN agents a ON a.namespace_id = m.namespace_id
WHERE m.archived = 0 AND m.key IS NOT NULL AND (m.source = 'entities' OR substr(m.source, length(m.source) - 8) = '/entities')
AND NOT EXISTS (SELECT 1 FROM unread u WHERE u.kind = 'memory' AND u.owner_id = m.id) ORDER BY m.id;
