"""Whether the service goes on doing what it can when much more is asked of it."""
