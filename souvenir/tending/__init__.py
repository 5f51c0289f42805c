"""Keeping a store in order: contradictions, near memories, what has outlived its use, and profiles that say so."""
