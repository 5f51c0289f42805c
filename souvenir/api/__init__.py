"""The HTTP API: routers with their request and response models, a file a noun, and what all of them share."""

VERSION = "0.1.0"
"""Of the service; equal to the project's in pyproject.toml, which the image does not hold."""
