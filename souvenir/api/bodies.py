"""Bodies on their way in: how much memory all of them may take together, and how slowly one may come.

What streams a body through without holding it does not ask here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from souvenir.errors import BodyTooSlow, Overloaded, ServiceClosing

WINDOW_BYTES = 64 * 1024
"""So much more of a body, or its end, must come within each window: what came fast before buys no time to drip."""

WINDOW_S = 16.0

MIN_BYTES_PER_S = int(WINDOW_BYTES / WINDOW_S)
"""What that comes to: a phone at the edge of its network sends it."""


class BodyProgress:
    """Counts a body as it comes, in windows of WINDOW_BYTES."""

    def __init__(self) -> None:
        self._window_bytes = 0

    def came(self, size: int) -> bool:
        """Whether these bytes fill the window; then the next one begins."""
        self._window_bytes += size
        if self._window_bytes < WINDOW_BYTES:
            return False
        self._window_bytes = 0
        return True


class BodyMemory:
    """The bytes of all bodies that are held; a body holds what has arrived of it, not what it announces."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._arriving: set[asyncio.Timeout] = set()
        self._closed = False
        self.held_bytes = 0

    async def read(self, chunks: AsyncIterator[bytes]) -> bytes:
        """The whole body; its length must be given back with `release`.

        :raises Overloaded: If the bodies of others leave no room for it.
        :raises BodyTooSlow: If it comes too slowly.
        :raises ServiceClosing: If the service is told to stop before it is there.
        """
        loop = asyncio.get_running_loop()
        limit = asyncio.timeout_at(loop.time() + WINDOW_S)
        progress = BodyProgress()
        parts: list[bytes] = []
        size = 0
        self._arriving.add(limit)
        try:
            async with limit:
                async for chunk in chunks:
                    self._take(len(chunk))
                    size += len(chunk)
                    parts.append(chunk)
                    if progress.came(len(chunk)):
                        limit.reschedule(loop.time() + WINDOW_S)
        except BaseException as error:
            self.release(size)
            if isinstance(error, TimeoutError):
                raise (ServiceClosing() if self._closed else BodyTooSlow(MIN_BYTES_PER_S)) from None
            raise
        finally:
            self._arriving.discard(limit)
        return b"".join(parts)

    def release(self, size: int) -> None:
        self.held_bytes -= size

    def close(self) -> None:
        """Whoever still sends is refused."""
        self._closed = True
        now = asyncio.get_running_loop().time()
        for limit in self._arriving:
            limit.reschedule(now)

    def _take(self, size: int) -> None:
        if self._closed:
            raise ServiceClosing
        if self.held_bytes + size > self._max_bytes:
            raise Overloaded("The bodies of other requests fill the memory for them; try again in a moment")
        self.held_bytes += size
