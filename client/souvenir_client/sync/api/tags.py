"""Operations of the section `tags`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Sequence

from souvenir_client.calls import NOT_SENT, Call, NotSent, Repeat, segments
from souvenir_client.records.tags import ChangedTagResponse, TagsResponse
from souvenir_client.sync.transport import Transport


class Tags:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(
        self,
        *,
        regex: str | NotSent | None = NOT_SENT,
        offset: int | NotSent = NOT_SENT,
        limit: int | NotSent = NOT_SENT,
    ) -> TagsResponse:
        """List the tags of living memories, with how often and since when they are used. `GET /tags`."""
        return self._transport.send(
            Call(
                "GET",
                "/tags",
                {200: TagsResponse},
                query={"regex": regex, "offset": offset, "limit": limit},
                repeat=Repeat.SAFE,
            )
        )

    def rename(self, *, old: str, new: str) -> ChangedTagResponse:
        """Give every memory that has one tag another in its place. `POST /tags/rename`."""
        return self._transport.send(
            Call("POST", "/tags/rename", {200: ChangedTagResponse}, body={"old": old, "new": new})
        )

    def merge(self, *, tags: Sequence[str], into: str) -> ChangedTagResponse:
        """Give every memory that has any of the tags one in their place. `POST /tags/merge`."""
        return self._transport.send(
            Call("POST", "/tags/merge", {200: ChangedTagResponse}, body={"tags": tags, "into": into})
        )

    def delete(self, tag: str) -> ChangedTagResponse:
        """Take a tag away from every memory that has it; the memories stay. `DELETE /tags/{tag}`."""
        return self._transport.send(Call("DELETE", f"/tags/{segments(tag)}", {200: ChangedTagResponse}))
