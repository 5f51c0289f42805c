"""Agents and what was said with them: sessions, messages, blocks, context, the three tiers."""
