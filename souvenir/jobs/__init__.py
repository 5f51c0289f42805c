"""Long work: jobs that are rows, run one at a time, and go on after a kill."""
