"""Tests of the page in a browser: a package, for the fixtures that its modules share (conftest.py)."""
