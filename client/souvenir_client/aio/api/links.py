"""Operations of the section `links`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from souvenir_client.aio.transport import AsyncTransport
from souvenir_client.calls import NOT_SENT, Call, NotSent, Repeat, segment
from souvenir_client.records.links import AddLinkResponse, LinksResponse, RemoveLinkResponse


class AsyncLinks:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def add(self, memory_id: int, *, to_id: int, type: str) -> AddLinkResponse:
        """Say what a memory is to another one; neither of them changes. `POST /memory/{memory_id}/link`."""
        return await self._transport.send(
            Call(
                "POST",
                f"/memory/{segment(memory_id)}/link",
                {200: AddLinkResponse},
                body={"to_id": to_id, "type": type},
            )
        )

    async def list(
        self, memory_id: int, *, type: str | NotSent | None = NOT_SENT, include_incoming: bool | NotSent = NOT_SENT
    ) -> LinksResponse:
        """List the links of a memory. `GET /memory/{memory_id}/links`."""
        return await self._transport.send(
            Call(
                "GET",
                f"/memory/{segment(memory_id)}/links",
                {200: LinksResponse},
                query={"type": type, "include_incoming": include_incoming},
                repeat=Repeat.SAFE,
            )
        )

    async def remove(self, memory_id: int, target_id: int, *, type: str | NotSent = NOT_SENT) -> RemoveLinkResponse:
        """Remove a link that begins at a memory. `DELETE /memory/{memory_id}/link/{target_id}`."""
        return await self._transport.send(
            Call(
                "DELETE",
                f"/memory/{segment(memory_id)}/link/{segment(target_id)}",
                {200: RemoveLinkResponse},
                query={"type": type},
            )
        )
