"""Isolation of two keys with disjoint scopes under random requests."""
