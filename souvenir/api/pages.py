"""Lists that are sent in pages: the parameters of a page, and how a bare array says how many there are on all pages."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Response

from souvenir.api.fields import MAX_ID

TOTAL_COUNT_HEADER = "X-Total-Count"

Offset = Annotated[int, Query(ge=0, le=MAX_ID, description="Items to leave out first.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="Items wanted.")]


def described_header(name: str, description: str, of_type: str) -> dict[int | str, dict[str, Any]]:
    """What the documentation says of a header of an answer."""
    return {200: {"headers": {name: {"description": description, "schema": {"type": of_type}}}}}


COUNTED = described_header(TOTAL_COUNT_HEADER, "How many there are on all pages.", "integer")
"""Of an answer that is a bare array."""


def set_total(response: Response, total: int) -> None:
    response.headers[TOTAL_COUNT_HEADER] = str(total)
