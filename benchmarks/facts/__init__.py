"""Memories with facts: what search finds by them, and what adding and finding them costs."""
