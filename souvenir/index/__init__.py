"""Derived, rebuildable indexes that live in memory: words, vectors, and their snapshots."""
