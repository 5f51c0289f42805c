"""Editor hooks: they send the messages of a session to the service, and return context from it."""
