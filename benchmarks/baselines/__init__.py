"""Reference systems for comparison with our engine."""
