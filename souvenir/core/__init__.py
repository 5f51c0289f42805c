"""Types, errors, settings and other values that all packages use."""
