"""Agents, sessions, messages, memory blocks, working memory and context."""
