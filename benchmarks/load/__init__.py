"""The service under load: many searchers and a writer, and a health probe."""
