"""Operations of the section `read`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from souvenir_client.aio.transport import AsyncTransport
from souvenir_client.calls import NOT_SENT, Call, NotSent, Repeat, segment
from souvenir_client.records.common import CountResponse, MemoryRecord
from souvenir_client.records.enums import TagMatch
from souvenir_client.records.read import GetBatchResponse, HistoryResponse, MemoryPage


class AsyncMemoriesOfRead:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def get(self, memory_id: int, *, as_of: str | datetime | NotSent | None = NOT_SENT) -> MemoryRecord:
        """Get one memory by its id, as it is or as it was at a moment. `GET /memory/{memory_id}`."""
        return await self._transport.send(
            Call(
                "GET", f"/memory/{segment(memory_id)}", {200: MemoryRecord}, query={"as_of": as_of}, repeat=Repeat.SAFE
            )
        )

    async def get_batch(self, *, ids: Sequence[int]) -> GetBatchResponse:
        """Get up to 1000 memories by their ids, and learn which do not exist. `POST /memory/get-batch`."""
        return await self._transport.send(
            Call("POST", "/memory/get-batch", {200: GetBatchResponse}, body={"ids": ids}, repeat=Repeat.SAFE)
        )

    async def list(
        self,
        *,
        offset: int | NotSent = NOT_SENT,
        limit: int | NotSent = NOT_SENT,
        source: str | NotSent | None = NOT_SENT,
        source_boundary: bool | NotSent = NOT_SENT,
        pinned: bool | NotSent | None = NOT_SENT,
        tag: Sequence[str] | NotSent | None = NOT_SENT,
        tag_match: TagMatch | NotSent = NOT_SENT,
        as_of: str | datetime | NotSent | None = NOT_SENT,
    ) -> MemoryPage:
        """List memories page by page, as they are or as they were at a moment. `GET /memories`."""
        return await self._transport.send(
            Call(
                "GET",
                "/memories",
                {200: MemoryPage},
                query={
                    "offset": offset,
                    "limit": limit,
                    "source": source,
                    "source_boundary": source_boundary,
                    "pinned": pinned,
                    "tag": tag,
                    "tag_match": tag_match,
                    "as_of": as_of,
                },
                repeat=Repeat.SAFE,
            )
        )

    async def count(
        self, *, source: str | NotSent | None = NOT_SENT, source_boundary: bool | NotSent = NOT_SENT
    ) -> CountResponse:
        """Count the memories of a namespace, or of some sources in it. `GET /memories/count`."""
        return await self._transport.send(
            Call(
                "GET",
                "/memories/count",
                {200: CountResponse},
                query={"source": source, "source_boundary": source_boundary},
                repeat=Repeat.SAFE,
            )
        )

    async def history(self, memory_id: int) -> HistoryResponse:
        """Show who changed a memory when and how, oldest first, and what took its place.

        `GET /memory/{memory_id}/history`.
        """
        return await self._transport.send(
            Call("GET", f"/memory/{segment(memory_id)}/history", {200: HistoryResponse}, repeat=Repeat.SAFE)
        )
