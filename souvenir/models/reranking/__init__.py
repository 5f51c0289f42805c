"""Cross-encoders that re-rank search results."""
