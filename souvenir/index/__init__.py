"""Derived, rebuildable in-memory indexes: words, vectors, and their snapshots."""
