"""A graph of named entities over the memories: an entity is a memory, what is observed of it are the memory's facts."""
