"""Background jobs: rows of the database, run by worker threads and resumed after a kill."""
