"""Adapters that put a client behind the interface of another SDK."""
