"""Entries of several requests, each within the limits of the service."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

MAX_ENTRIES = 1000
MAX_BYTES = 1_500_000
"""A body has at most 2 MiB."""
MAX_CHARACTERS = 140_000
"""The texts of a request have at most 150,000 tokens."""


def batches(entries: Iterable[Mapping[str, Any]], *, text: str) -> Iterator[list[Mapping[str, Any]]]:
    """The entries in the same order, in as few requests as their number and size allow.

    :param text: The field that is embedded.
    """
    batch: list[Mapping[str, Any]] = []
    size = characters = 0
    for entry in entries:
        # Characters of the escaped form, which are at least as many as the bytes of UTF-8.
        length = len(json.dumps(entry))
        size, characters = size + length, characters + len(entry[text])
        if batch and (len(batch) == MAX_ENTRIES or size > MAX_BYTES or characters > MAX_CHARACTERS):
            yield batch
            batch, size, characters = [], length, len(entry[text])
        batch.append(entry)
    if batch:
        yield batch
