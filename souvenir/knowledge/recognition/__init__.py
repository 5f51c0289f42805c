"""Recognition of concepts in text, without a language model."""
