"""Operations of the section `delete`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Sequence

from souvenir_client.aio.transport import AsyncTransport
from souvenir_client.calls import NOT_SENT, Call, NotSent, segment
from souvenir_client.records.common import CountResponse
from souvenir_client.records.delete import DeleteBatchResponse, DeleteManyResponse, DeleteResponse


class AsyncMemoriesOfDelete:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def delete(self, memory_id: int, *, force: bool | NotSent = NOT_SENT) -> DeleteResponse:
        """Forget one memory for good; its id is never used again. `DELETE /memory/{memory_id}`."""
        return await self._transport.send(
            Call("DELETE", f"/memory/{segment(memory_id)}", {200: DeleteResponse}, query={"force": force})
        )

    async def delete_all(self, *, source: str) -> CountResponse:
        """Forget the unpinned memories whose source begins with a text; a backup is made first. `DELETE /memories`."""
        return await self._transport.send(Call("DELETE", "/memories", {200: CountResponse}, query={"source": source}))

    async def delete_batch(self, *, ids: Sequence[int]) -> DeleteBatchResponse:
        """Forget up to 1000 memories in one transaction, except the pinned ones. `POST /memory/delete-batch`."""
        return await self._transport.send(
            Call("POST", "/memory/delete-batch", {200: DeleteBatchResponse}, body={"ids": ids})
        )

    async def delete_by_source(
        self, *, source_pattern: str, dry_run: bool | NotSent = NOT_SENT, skip_snapshot: bool | NotSent = NOT_SENT
    ) -> DeleteManyResponse:
        """Forget the unpinned memories whose source contains a text; a backup is made first.

        `POST /memory/delete-by-source`.
        """
        return await self._transport.send(
            Call(
                "POST",
                "/memory/delete-by-source",
                {200: DeleteManyResponse},
                body={"dry_run": dry_run, "skip_snapshot": skip_snapshot, "source_pattern": source_pattern},
            )
        )

    async def delete_by_prefix(
        self, *, source_prefix: str, dry_run: bool | NotSent = NOT_SENT, skip_snapshot: bool | NotSent = NOT_SENT
    ) -> DeleteManyResponse:
        """Forget the unpinned memories whose source begins with a text; a backup is made first.

        `POST /memory/delete-by-prefix`.
        """
        return await self._transport.send(
            Call(
                "POST",
                "/memory/delete-by-prefix",
                {200: DeleteManyResponse},
                body={"dry_run": dry_run, "skip_snapshot": skip_snapshot, "source_prefix": source_prefix},
            )
        )
