"""Whether topics are the subjects that a history is made of."""
