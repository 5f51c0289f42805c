"""The cost of extraction to concurrent searches: time, memory and order."""
