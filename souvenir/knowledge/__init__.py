"""The concept graph of an agent and the entity graph over memories."""
