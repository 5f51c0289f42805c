"""An optional second look: a cross-encoder reads the question with each of the best passages."""
