"""Pure functions over texts, ids and scores: passages, profiles, filters, ranking."""
