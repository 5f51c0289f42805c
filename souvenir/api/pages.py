"""Lists that are sent in pages: the parameters of a page, and how a bare array says how many there are on all pages."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Response

from souvenir.api.fields import MAX_ID

TOTAL_COUNT_HEADER = "X-Total-Count"

Offset = Annotated[int, Query(ge=0, le=MAX_ID, description="Items to leave out first.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="Items wanted.")]


def described_headers(*headers: tuple[str, str, str]) -> dict[int | str, dict[str, Any]]:
    """What the documentation says of the headers of an answer: name, description and type of each."""
    described = {name: {"description": text, "schema": {"type": of_type}} for name, text, of_type in headers}
    return {200: {"headers": described}}


COUNTED = described_headers((TOTAL_COUNT_HEADER, "How many there are on all pages.", "integer"))
"""Of an answer that is a bare array."""


def set_total(response: Response, total: int) -> None:
    response.headers[TOTAL_COUNT_HEADER] = str(total)
