"""Operations of the section `tags`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Sequence

from souvenir_client.aio.transport import AsyncTransport
from souvenir_client.calls import NOT_SENT, Call, NotSent, Repeat, segments
from souvenir_client.records.tags import ChangedTagResponse, TagsResponse


class AsyncTags:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(
        self,
        *,
        regex: str | NotSent | None = NOT_SENT,
        offset: int | NotSent = NOT_SENT,
        limit: int | NotSent = NOT_SENT,
    ) -> TagsResponse:
        """List the tags of living memories, with how often and since when they are used. `GET /tags`."""
        return await self._transport.send(
            Call(
                "GET",
                "/tags",
                {200: TagsResponse},
                query={"regex": regex, "offset": offset, "limit": limit},
                repeat=Repeat.SAFE,
            )
        )

    async def rename(self, *, old: str, new: str) -> ChangedTagResponse:
        """Give every memory that has one tag another in its place. `POST /tags/rename`."""
        return await self._transport.send(
            Call("POST", "/tags/rename", {200: ChangedTagResponse}, body={"old": old, "new": new})
        )

    async def merge(self, *, tags: Sequence[str], into: str) -> ChangedTagResponse:
        """Give every memory that has any of the tags one in their place. `POST /tags/merge`."""
        return await self._transport.send(
            Call("POST", "/tags/merge", {200: ChangedTagResponse}, body={"tags": tags, "into": into})
        )

    async def delete(self, tag: str) -> ChangedTagResponse:
        """Take a tag away from every memory that has it; the memories stay. `DELETE /tags/{tag}`."""
        return await self._transport.send(Call("DELETE", f"/tags/{segments(tag)}", {200: ChangedTagResponse}))
