"""The client of Souvenir, a memory service for agents.

Souvenir, AsyncSouvenir     the whole HTTP API
errors                      what can go wrong
records                     what is answered
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from souvenir_client.aio.client import AsyncSouvenir
from souvenir_client.calls import NOT_SENT, Listing, NotSent
from souvenir_client.errors import SouvenirError
from souvenir_client.sync.client import Souvenir

try:
    __version__ = version("souvenir-client")
except PackageNotFoundError:  # used from its sources
    __version__ = "0"

__all__ = ["NOT_SENT", "AsyncSouvenir", "Listing", "NotSent", "Souvenir", "SouvenirError"]
