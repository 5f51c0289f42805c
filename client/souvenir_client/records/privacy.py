"""What the service answers in its section `privacy`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from dataclasses import dataclass

from souvenir_client.records.common import RemovedCounts
from souvenir_client.records.enums import Action


@dataclass(frozen=True, slots=True, kw_only=True)
class EraseResponse:
    """The receipt."""

    removed: RemovedCounts
    postings: int
    tombstones: int
    files_cleared: bool
    backups_rewritten: list[str]
    backups_dropped: list[str]
    backups_holding: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRecord:
    secrets: Action
    pii: Action
    hidden_topics: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RescanResponse:
    looked_at: int
    changed: int
