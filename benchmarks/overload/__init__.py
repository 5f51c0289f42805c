"""Throughput of the service at several times its capacity."""
