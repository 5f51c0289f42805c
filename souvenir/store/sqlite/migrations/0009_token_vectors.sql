-- The token vectors of a passage beside its vector (souvenir.core.passages.TokenCodes); NULL: none, or not made yet.
ALTER TABLE vectors ADD COLUMN tokens BLOB;
