"""What the service answers in its section `tags`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedTagResponse:
    changed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TagsResponse:
    tags: list[UsedTag]
    total: int
    offset: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedTag:
    tag: str
    count: int
    first_used_at: str
    last_used_at: str
