-- A message is one passage, which neighbours in its session lend to. The vector of the first window stays.
DELETE FROM passages WHERE kind = 'message' AND ordinal > 0;
UPDATE passages SET text = (SELECT content FROM messages m WHERE m.id = owner_id) WHERE kind = 'message';

-- Whether a caller said when it occurred: memories of one source and one such time belong together.
ALTER TABLE passages ADD COLUMN dated INTEGER NOT NULL DEFAULT 0 CHECK (dated IN (0, 1));
UPDATE passages SET dated = 1
WHERE kind = 'memory' AND (SELECT document_at FROM memories m WHERE m.id = owner_id) IS NOT NULL;
