"""Idempotency-Key: the header by which a request that is sent again is done once, and answered as it was."""

from __future__ import annotations

import json
from typing import Annotated, Any

from fastapi import Depends, Header, Request, Response

from souvenir.store.idempotency import Once

IDEMPOTENCY_KEY_HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotency-Replayed"
MAX_KEY_CHARS = 255


async def _once_of(
    request: Request,
    response: Response,
    key: Annotated[
        str | None,
        Header(
            alias=IDEMPOTENCY_KEY_HEADER,
            min_length=1,
            max_length=MAX_KEY_CHARS,
            description="A name for this request, such as a UUID. Sent again within 24 hours, it makes nothing new and "
            f"is answered with what it made, and with `{REPLAYED_HEADER}: true`.",
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


MakeOnce = Annotated[Once | None, Depends(_once_of)]
"""What a route that makes something declares and hands to its verb; None without the header."""
