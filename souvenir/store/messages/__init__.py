"""Tables of agents, sessions, messages and memory blocks."""
