"""Extraction: memories learned from conversations."""
