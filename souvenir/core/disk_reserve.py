"""Marks work that may use the space that the store keeps in reserve for a full disk: deletions, and what they need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_frees: ContextVar[bool] = ContextVar("souvenir_frees_space", default=False)


@contextmanager
def frees_space() -> Iterator[None]:
    """Let writes inside use the reserve. It works as a decorator too, and on threads that inherit the context."""
    token = _frees.set(True)
    try:
        yield
    finally:
        _frees.reset(token)


def may_use_reserve() -> bool:
    return _frees.get()
