"""Forgetting: agents, users, sessions, messages and more, removed everywhere, and for good if that is asked for."""
