"""Operations of the section `graph`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from souvenir_client.aio.transport import AsyncTransport
from souvenir_client.calls import NOT_SENT, Call, NotSent, Repeat
from souvenir_client.records.graph import GraphResponse, StoreGraphResponse


class AsyncGraph:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def read(
        self,
        *,
        q: str | NotSent | None = NOT_SENT,
        names: Sequence[str] | NotSent | None = NOT_SENT,
        offset: int | NotSent = NOT_SENT,
        limit: int | NotSent = NOT_SENT,
    ) -> GraphResponse:
        """Read entities with what is observed of them and how they relate: all, or those that contain or are named so.

        `GET /knowledge-graph`.
        """
        return await self._transport.send(
            Call(
                "GET",
                "/knowledge-graph",
                {200: GraphResponse},
                query={"q": q, "names": names, "offset": offset, "limit": limit},
                repeat=Repeat.SAFE,
            )
        )

    async def store(
        self,
        *,
        entities: Sequence[Mapping[str, Any]] | NotSent = NOT_SENT,
        relations: Sequence[Mapping[str, Any]] | NotSent = NOT_SENT,
    ) -> StoreGraphResponse:
        """Store what is not there yet of a graph, in one transaction; sending it again changes nothing.

        `POST /knowledge-graph`.
        """
        return await self._transport.send(
            Call(
                "POST",
                "/knowledge-graph",
                {200: StoreGraphResponse},
                body={"entities": entities, "relations": relations},
                repeat=Repeat.SAFE,
            )
        )
