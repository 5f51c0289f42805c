"""Agents, sessions, messages, memory blocks, working memory and context."""

from souvenir.conversations.manager import MemoryConfig, MemoryManager

__all__ = ["MemoryConfig", "MemoryManager"]
