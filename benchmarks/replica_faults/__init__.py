"""Faults of replicas that share a database in PostgreSQL, under clients that keep an account of every answer."""
