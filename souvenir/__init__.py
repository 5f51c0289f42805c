"""Souvenir, a memory service for agents."""

VERSION = "0.1.0"
"""The version of the service. Equal to that in pyproject.toml, which the image does not hold."""
