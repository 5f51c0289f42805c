"""A proxy in front of OpenAI's and Anthropic's APIs that gives the calls of any program the memory of an agent.

It is loaded with its first request: its HTTP client takes a fifth of a second.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from starlette.datastructures import State

if TYPE_CHECKING:
    from souvenir.compat.proxy.passing import Proxy


def proxy_of(state: State) -> Proxy:
    """The proxy of an application by its state, made the first time."""
    if not hasattr(state, "proxy"):
        state.proxy = import_module("souvenir.compat.proxy.passing").Proxy(state.service)
    proxy: Proxy = state.proxy
    return proxy


async def close_proxy(state: State) -> None:
    if hasattr(state, "proxy"):
        await proxy_of(state).close()
