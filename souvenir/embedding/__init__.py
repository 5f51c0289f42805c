"""What makes vectors: models of our own and of providers, their tokens and windows, and the batcher of both."""
