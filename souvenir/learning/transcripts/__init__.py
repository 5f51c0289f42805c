"""Transcripts: parsing, cleaning and windows."""
