"""The patch of the one method of each SDK through which every call goes, while a block is open.

It is `request` of the class that defines it, for OpenAI, AsyncOpenAI, Anthropic and AsyncAnthropic: all forms of a call
and all subclasses use it, and retries happen below it. The first block replaces the method, the last one restores the
same function. The context of each call decides what the replacement does (`calls`).

An SDK is never imported from here. One that is imported while a block is open is patched after its import, by a finder
on `sys.meta_path` that finds nothing itself. If other code replaced the method after us, its method is not touched.
Ours then stays below it, and the next block replaces theirs by another of ours while a block is open, because theirs
may not call ours. A call that passes two of ours is handled by the first only (`model_calls`). Thread-safe.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from threading import RLock
from types import ModuleType
from typing import Any
from weakref import WeakSet

METHOD = "request"
CLIENTS: Mapping[str, Sequence[str]] = {
    "openai": ("OpenAI", "AsyncOpenAI"),
    "anthropic": ("Anthropic", "AsyncAnthropic"),
}

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


class Patches:
    """:param wrap_sync: Creates the replacement of a method, with `functools.wraps`.

    :param wrap_async: Creates that of a coroutine method.
    """

    def __init__(self, wrap_sync: Wrap, wrap_async: Wrap) -> None:
        self._wrap_sync = wrap_sync
        self._wrap_async = wrap_async
        self._users = 0
        self._owners: set[type] = set()
        self._ours: WeakSet[Callable[..., Any]] = WeakSet()
        self._watch = _ImportWatch(self._imported)
        # A module may be imported by the thread that holds the lock.
        self._lock = RLock()
        if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
            os.register_at_fork(after_in_child=self._forked)

    def enter(self) -> None:
        with self._lock:
            self._users += 1
            for name in CLIENTS:
                self._replace(sys.modules.get(name))
            if self._users == 1:
                sys.meta_path.insert(0, self._watch)

    def leave(self) -> None:
        with self._lock:
            self._users -= 1
            if self._users == 0:
                if self._watch in sys.meta_path:
                    sys.meta_path.remove(self._watch)
                self._restore()

    def _imported(self, module: ModuleType) -> None:
        with self._lock:
            if self._users:
                self._replace(module)

    def _replace(self, module: ModuleType | None) -> None:
        for name in CLIENTS[module.__name__] if module is not None else ():
            owner = _owner(getattr(module, name, None))
            if owner is not None and not self._is_ours(owner.__dict__[METHOD]):
                original = owner.__dict__[METHOD]
                wrap = self._wrap_async if inspect.iscoroutinefunction(original) else self._wrap_sync
                ours = wrap(original)
                self._ours.add(ours)
                self._owners.add(owner)
                setattr(owner, METHOD, ours)

    def _restore(self) -> None:
        for owner in self._owners:
            while self._is_ours(found := owner.__dict__[METHOD]):
                setattr(owner, METHOD, found.__wrapped__)

    def _is_ours(self, found: Any) -> bool:
        return inspect.isfunction(found) and found in self._ours

    def _forked(self) -> None:
        """Replace the lock in a forked process: a thread of the parent may have held it."""
        self._lock = RLock()


def _owner(client: object) -> type | None:
    """Return the class that defines the method for a client's class."""
    if not isinstance(client, type):
        return None
    return next((owner for owner in client.__mro__ if METHOD in owner.__dict__), None)


class _ImportWatch(MetaPathFinder):
    """Notifies when one of the SDKs was imported; other finders load it."""

    def __init__(self, imported: Callable[[ModuleType], None]) -> None:
        self._imported = imported

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in CLIENTS:
            return None
        spec = next(self._found(fullname, path, target), None)
        if spec is not None and spec.loader is not None:
            _tell(spec.loader, self._imported)
        return spec

    def _found(self, *wanted: Any) -> Iterator[ModuleSpec]:
        for finder in list(sys.meta_path):
            spec = None if finder is self else finder.find_spec(*wanted)
            if spec is not None:
                yield spec


def _tell(loader: Loader, imported: Callable[[ModuleType], None]) -> None:
    """Notify after this loader has executed its next module; its class and other loaders are unchanged."""
    run = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        del vars(loader)["exec_module"]
        run(module)
        imported(module)

    if hasattr(loader, "__dict__"):
        vars(loader)["exec_module"] = exec_module
