"""Embedding models, language models and re-rankers, in this process or behind a provider."""
