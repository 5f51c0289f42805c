"""Operations of the section `replace`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from souvenir_client.aio.transport import AsyncTransport
from souvenir_client.calls import NOT_SENT, Call, NotSent, segment
from souvenir_client.records.replace import ArchiveBatchResponse, MergeResponse, SupersedeResponse


class AsyncMemoriesOfReplace:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def supersede(
        self,
        memory_id: int,
        *,
        text: str,
        source: str | NotSent | None = NOT_SENT,
        metadata: Mapping[str, Any] | NotSent | None = NOT_SENT,
    ) -> SupersedeResponse:
        """Store a new text in the place of a memory, which is archived and linked.

        `POST /memory/{memory_id}/supersede`.
        """
        return await self._transport.send(
            Call(
                "POST",
                f"/memory/{segment(memory_id)}/supersede",
                {200: SupersedeResponse},
                body={"text": text, "source": source, "metadata": metadata},
            )
        )

    async def replace(
        self,
        *,
        old_id: int,
        new_text: str,
        source: str | NotSent = NOT_SENT,
        metadata: Mapping[str, Any] | NotSent | None = NOT_SENT,
    ) -> SupersedeResponse:
        """Store a new text in the place of a memory, which is archived and linked. `POST /memory/supersede`."""
        return await self._transport.send(
            Call(
                "POST",
                "/memory/supersede",
                {200: SupersedeResponse},
                body={"old_id": old_id, "new_text": new_text, "source": source, "metadata": metadata},
            )
        )

    async def merge(self, *, ids: Sequence[int], merged_text: str, source: str) -> MergeResponse:
        """Store one text in the place of several memories, which are archived and linked. `POST /memory/merge`."""
        return await self._transport.send(
            Call(
                "POST",
                "/memory/merge",
                {200: MergeResponse},
                body={"ids": ids, "merged_text": merged_text, "source": source},
            )
        )

    async def archive_batch(self, *, ids: Sequence[int]) -> ArchiveBatchResponse:
        """Take up to 1000 memories out of searches; ids that do not exist are skipped. `POST /memory/archive-batch`."""
        return await self._transport.send(
            Call("POST", "/memory/archive-batch", {200: ArchiveBatchResponse}, body={"ids": ids})
        )
