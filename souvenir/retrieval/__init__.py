"""Search: query understanding, candidates, ranking, relevance and re-ranking."""
