"""What a check of `souvenir doctor` says."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Finding:
    """One sentence, which says what to do unless all is well."""

    check: str
    status: Status
    message: str
