"""Operations of the section `conflicts`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from souvenir_client.aio.transport import AsyncTransport
from souvenir_client.calls import NOT_SENT, Call, NotSent, Repeat
from souvenir_client.records.conflicts import ConflictList, ResolveConflictsResponse


class AsyncConflicts:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self, *, limit: int | NotSent = NOT_SENT, offset: int | NotSent = NOT_SENT) -> ConflictList:
        """List memories that say otherwise than another one, each with that other. `GET /memory/conflicts`."""
        return await self._transport.send(
            Call(
                "GET",
                "/memory/conflicts",
                {200: ConflictList},
                query={"limit": limit, "offset": offset},
                repeat=Repeat.SAFE,
            )
        )

    async def resolve(
        self, *, dry_run: bool | NotSent = NOT_SENT, max: int | NotSent = NOT_SENT
    ) -> ResolveConflictsResponse:
        """Archive the older one of two memories that contradict each other, where a rule can say which that is.

        `POST /memory/conflicts/resolve`.
        """
        return await self._transport.send(
            Call(
                "POST",
                "/memory/conflicts/resolve",
                {200: ResolveConflictsResponse},
                body={"dry_run": dry_run, "max": max},
            )
        )
