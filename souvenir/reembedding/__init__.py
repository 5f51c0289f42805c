"""Another embedding model for the vectors that are stored: chosen at the start, changed by a job."""
