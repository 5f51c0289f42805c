"""Hooks for editors: what was said in a session goes to the service, and what it knows comes back as context."""
