"""Idempotency-Key: with this header, a request that is sent again is done once and answered as before."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import Depends, Header, Request, Response

from souvenir.store.idempotency import Once

IDEMPOTENCY_KEY_HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotency-Replayed"
MAX_KEY_CHARS = 255


async def once_of(
    request: Request,
    response: Response,
    key: Annotated[
        str | None,
        Header(
            alias=IDEMPOTENCY_KEY_HEADER,
            min_length=1,
            max_length=MAX_KEY_CHARS,
            description="A unique key for this request, such as a UUID. A repetition within 24 hours creates nothing "
            f"and returns what the first request created, with `{REPLAYED_HEADER}: true`.",
            examples=["7f1f9c1e-3c55-4a1c-9d0e-2b5f0c6f7d11"],
        ),
    ] = None,
) -> Once | None:
    if key is None:
        return None

    def replayed() -> None:
        response.headers[REPLAYED_HEADER] = "true"

    route: str = request.scope["route"].name
    return Once.of(route, key, [request.url.path, await _body(request)], replayed)


async def _body(request: Request) -> Any:
    try:
        return await request.json()
    except json.JSONDecodeError:  # which is refused when the fields are looked at
        return None


MakeOnce = Annotated[Once | None, Depends(once_of)]
"""Declared by a route that creates something, and passed to the function that does; None without the header."""
