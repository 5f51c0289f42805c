"""Types, errors, settings and other values that every package uses."""
