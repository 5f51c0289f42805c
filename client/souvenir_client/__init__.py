"""The client of Souvenir, a memory service for agents."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("souvenir-client")
except PackageNotFoundError:  # used from its sources
    __version__ = "0"
