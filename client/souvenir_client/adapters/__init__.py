"""Adapters that put a client behind the interface of another SDK; each needs that SDK installed."""
