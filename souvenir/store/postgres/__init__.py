"""The database in PostgreSQL, for several replicas of the service."""
