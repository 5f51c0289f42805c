-- Concepts are told apart and joined by their letters, so they have no passages with vectors any more.
DELETE FROM vectors WHERE passage_id IN (SELECT id FROM passages WHERE kind = 'concept');
DELETE FROM passages WHERE kind = 'concept';
DELETE FROM index_changes WHERE kind = 'concept';
DELETE FROM trimmed_index_changes WHERE kind = 'concept';

-- Every pair was equally similar, and nothing read when a topic had changed.
ALTER TABLE near_concepts DROP COLUMN similarity;
ALTER TABLE topics DROP COLUMN updated_at;
