"""Data that leaves and comes back: exports, imports, and memories built from Markdown files."""
