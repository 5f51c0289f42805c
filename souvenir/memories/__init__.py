"""Memories: the engine, facts, tags, links, history, duplicates, conflicts and retention."""
