"""Claude's memory tool `memory_20250818`: its commands over the documents of an agent."""
