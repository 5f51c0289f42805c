"""Measurements that are too long for the tests: speed, retrieval quality, durability. Nothing here is shipped."""
