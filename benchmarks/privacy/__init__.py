"""Spans found by the privacy rules, per character, compared with Presidio's regex recognisers."""
