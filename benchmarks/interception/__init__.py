"""The overhead of `learning()` per model call."""
