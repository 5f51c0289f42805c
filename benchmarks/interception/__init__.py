"""What `learning()` adds to a call of a model."""
