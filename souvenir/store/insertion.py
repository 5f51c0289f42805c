"""New memories in one transaction, made once however often they are sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from souvenir.passages import PreparedPassage
from souvenir.store.idempotency import Once, do_once
from souvenir.store.transaction import Transaction
from souvenir.types import MemoryDraft

PreparedDraft: TypeAlias = tuple[MemoryDraft, Sequence[PreparedPassage]]


def insert_once(tx: Transaction, prepared: Sequence[PreparedDraft], once: Once | None) -> list[int]:
    """The ids of these, in their order, or of what the same request made before; some may be deleted since.

    :raises IdempotencyKeyReused: If the key came with another request.
    """
    return do_once(
        tx,
        once,
        lambda: [tx.insert(draft, passages).id for draft, passages in prepared],
        ids=lambda made: [str(one) for one in made],
        again=lambda made: [int(one) for one in made],
    )
