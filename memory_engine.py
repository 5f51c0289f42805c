"""The engine of memories: namespaces, passages, search, backup and check."""

from souvenir.memories.engine import MemoryEngine

__all__ = ["MemoryEngine"]
