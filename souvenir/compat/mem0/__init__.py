"""The routes of Mem0, for its unmodified clients."""
