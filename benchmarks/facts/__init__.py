"""Memories with facts: their effect on search results, and the cost of adding and finding them."""
