"""The truth: one SQLite database, written by one thread, read by a small pool, copied by backups."""
