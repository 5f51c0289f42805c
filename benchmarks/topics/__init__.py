"""Agreement of topics with the subjects of a history."""
