"""Operations of the section `transfer`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime
from typing import Any

from souvenir_client.aio.transport import AsyncTransport
from souvenir_client.calls import NOT_SENT, Call, NotSent, Repeat
from souvenir_client.records.common import JobAccepted
from souvenir_client.records.transfer import BuildResponse, ImportResponse


class AsyncTransfer:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    def export_memories(
        self,
        *,
        source: str | NotSent | None = NOT_SENT,
        source_boundary: bool | NotSent = NOT_SENT,
        since: str | datetime | NotSent | None = NOT_SENT,
        until: str | datetime | NotSent | None = NOT_SENT,
        history: bool | NotSent = NOT_SENT,
    ) -> AsyncIterator[dict[str, Any]]:
        """Stream one state of the memories that the key may see, archived ones included, a line of JSON each.

        `GET /export`.
        """
        return self._transport.lines(
            Call(
                "GET",
                "/export",
                {200: Any},
                query={
                    "source": source,
                    "source_boundary": source_boundary,
                    "since": since,
                    "until": until,
                    "history": history,
                },
                repeat=Repeat.SAFE,
            )
        )

    async def import_memories(
        self,
        content: bytes | Iterable[bytes],
        *,
        strategy: str | NotSent = NOT_SENT,
        source_remap: str | NotSent | None = NOT_SENT,
        no_backup: bool | NotSent = NOT_SENT,
        wait_s: float | NotSent = NOT_SENT,
    ) -> ImportResponse | JobAccepted:
        """Store the memories of a file with their times, keys and links; lines that cannot be stored are reported.

        `POST /import`.
        """
        return await self._transport.send(
            Call(
                "POST",
                "/import",
                {200: ImportResponse, 202: JobAccepted},
                query={"strategy": strategy, "source_remap": source_remap, "no_backup": no_backup, "wait_s": wait_s},
                content=content,
            )
        )


class AsyncMaintenanceOfTransfer:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def build_index(
        self, *, wait_s: float | NotSent = NOT_SENT, sources: Sequence[str] | NotSent | None = NOT_SENT
    ) -> BuildResponse | JobAccepted:
        """Add and update a memory for each section of the files below WORKSPACE_DIR; nothing is removed.

        `POST /index/build`.
        """
        return await self._transport.send(
            Call(
                "POST",
                "/index/build",
                {200: BuildResponse, 202: JobAccepted},
                query={"wait_s": wait_s},
                body={"sources": sources},
            )
        )
