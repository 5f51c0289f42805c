"""The wire of the Memories family: what its clients send and expect beyond our own routes."""
