"""Operations of the section `audit`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from souvenir_client.aio.transport import AsyncTransport
from souvenir_client.calls import NOT_SENT, Call, NotSent, Repeat
from souvenir_client.records.audit import AuditResponse, PurgeResponse


class AsyncAudit:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(
        self,
        *,
        action: str | NotSent | None = NOT_SENT,
        key_id: str | NotSent | None = NOT_SENT,
        resource_id: str | NotSent | None = NOT_SENT,
        limit: int | NotSent = NOT_SENT,
        offset: int | NotSent = NOT_SENT,
    ) -> AuditResponse:
        """List every change of a memory, every act of an admin and every denied request, newest first. `GET /audit`."""
        return await self._transport.send(
            Call(
                "GET",
                "/audit",
                {200: AuditResponse},
                query={
                    "action": action,
                    "key_id": key_id,
                    "resource_id": resource_id,
                    "limit": limit,
                    "offset": offset,
                },
                repeat=Repeat.SAFE,
            )
        )

    async def purge(self, *, retention_days: int | NotSent = NOT_SENT) -> PurgeResponse:
        """Delete the acts and denials that are older; changes are part of their memories' history and stay.

        `POST /audit/purge`.
        """
        return await self._transport.send(
            Call("POST", "/audit/purge", {200: PurgeResponse}, query={"retention_days": retention_days})
        )
