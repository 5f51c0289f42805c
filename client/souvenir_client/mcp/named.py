"""A service that somebody named: it is asked as it is, and nothing is started."""

from __future__ import annotations

from dataclasses import dataclass

from souvenir_client.calls import Address


@dataclass(frozen=True, slots=True)
class Named:
    """A target that is always there to be asked."""

    address: Address

    async def ready(self) -> None:
        """What it says is what counts."""

    def lost(self) -> None:
        """The next request finds out."""
