"""The feed of changes and its readers."""
