"""What the service answers in its section `links`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class AddLinkResponse:
    from_id: int
    to_id: int
    type: str
    created_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LinksResponse:
    memory_id: int
    links: list[ListedLink]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedLink:
    to_id: int
    type: str
    created_at: str
    from_id: int
    direction: Literal["outgoing", "incoming"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveLinkResponse:
    removed: bool
