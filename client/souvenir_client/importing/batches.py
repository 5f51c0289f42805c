"""Batches for requests, bounded in number and in characters, so that each is embedded well within the timeout."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from souvenir_client.errors import ApiError, Conflict, Forbidden, InvalidRequest

MAX_RECORDS = 100
MAX_CHARS = 50_000
"""The limit of one text: seconds for the model on slow cores, where a request may take 30."""

FOR_EVERY_RECORD = frozenset({408, 413, 421})
"""Status codes that refuse the request, not its content."""

Item = TypeVar("Item")


def batches(items: Sequence[Item], chars: Callable[[Item], int]) -> Iterator[Sequence[Item]]:
    """Split the items into batches, in order; an item above the limit has its own batch."""
    batch: list[Item] = []
    size = 0
    for item in items:
        if batch and (len(batch) >= MAX_RECORDS or size + chars(item) > MAX_CHARS):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += chars(item)
    if batch:
        yield batch


def send_all(
    items: Sequence[Item], send: Callable[[Sequence[Item]], None], refused: Callable[[Item, ApiError], None]
) -> None:
    """Send a batch; if its content is refused, send it in halves, so that only invalid items are omitted.

    :raises ApiError: If the service refuses for another reason.
    """
    try:
        send(items)
    except (InvalidRequest, Conflict, Forbidden) as error:
        if error.status in FOR_EVERY_RECORD or (isinstance(error, Forbidden) and error.code != "source_forbidden"):
            raise
        if len(items) == 1:
            refused(items[0], error)
            return
        half = len(items) // 2
        send_all(items[:half], send, refused)
        send_all(items[half:], send, refused)
