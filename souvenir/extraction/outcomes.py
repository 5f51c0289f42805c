"""What came of a fact, as rows of the ledger hold it and clients read it."""

from __future__ import annotations

from typing import Any

from souvenir.types import JsonObject


def skipped(reason: str, **more: Any) -> JsonObject:
    """A fact that is not kept. :param reason: One word, of a closed set."""
    return {"action": "skipped", "reason": reason, **more}


def error(reason: str) -> JsonObject:
    return {"action": "error", "error": reason}
