"""Data transfer: exports, imports, and memories built from Markdown files."""
