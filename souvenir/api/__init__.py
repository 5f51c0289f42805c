"""The HTTP API: one module a resource, with its routes and their request and response models."""
