"""The client of Souvenir, a memory service for agents.

Souvenir, AsyncSouvenir     the HTTP API
learning, session           memory for the calls of OpenAI's and Anthropic's SDKs
errors                      exceptions
records                     responses

    with Souvenir(namespace="team-a") as souvenir:
        souvenir.memories.add(text="Alice leads billing.", source="team/billing")
        found = souvenir.memories.search(query="who leads billing?")

    async with AsyncSouvenir(namespace="team-a") as souvenir:
        found = await souvenir.memories.search(query="who leads billing?")

Each is imported when it is first used, so that editor hooks and the help of the command line start quickly.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from souvenir_client.aio.client import AsyncSouvenir
    from souvenir_client.calls import NOT_SENT, Listing, NotSent
    from souvenir_client.errors import SouvenirError
    from souvenir_client.interception.blocks import session
    from souvenir_client.interception.learning import learning
    from souvenir_client.sync.client import Souvenir

    __version__: str

__all__ = ["NOT_SENT", "AsyncSouvenir", "Listing", "NotSent", "Souvenir", "SouvenirError", "learning", "session"]

_PLACES = {
    "AsyncSouvenir": "aio.client",
    "Listing": "calls",
    "NOT_SENT": "calls",
    "NotSent": "calls",
    "Souvenir": "sync.client",
    "SouvenirError": "errors",
    "learning": "interception.learning",
    "session": "interception.blocks",
}


if not TYPE_CHECKING:  # a checker that saw it would let every name pass

    def __getattr__(name: str) -> Any:
        if name == "__version__":
            value = _version()
        elif name in _PLACES:
            value = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
        else:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("souvenir-client")
    except PackageNotFoundError:  # used from its sources
        return "0"
