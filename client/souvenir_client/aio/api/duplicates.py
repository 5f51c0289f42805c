"""Operations of the section `duplicates`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from souvenir_client.aio.transport import AsyncTransport
from souvenir_client.calls import NOT_SENT, Call, NotSent, Repeat
from souvenir_client.records.common import JobAccepted
from souvenir_client.records.duplicates import DeduplicateResponse, IsNovelResponse


class AsyncMemoriesOfDuplicates:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def is_novel(self, *, text: str, threshold: float | NotSent = NOT_SENT) -> IsNovelResponse:
        """Compare a text with the memory most similar to it; nothing is stored. `POST /memory/is-novel`."""
        return await self._transport.send(
            Call(
                "POST",
                "/memory/is-novel",
                {200: IsNovelResponse},
                body={"text": text, "threshold": threshold},
                repeat=Repeat.SAFE,
            )
        )

    async def deduplicate(
        self,
        *,
        wait_s: float | NotSent = NOT_SENT,
        threshold: float | NotSent = NOT_SENT,
        dry_run: bool | NotSent = NOT_SENT,
    ) -> DeduplicateResponse | JobAccepted:
        """Find memories of one source that say the same and keep the oldest; a backup is made first.

        `POST /memory/deduplicate`.
        """
        return await self._transport.send(
            Call(
                "POST",
                "/memory/deduplicate",
                {200: DeduplicateResponse, 202: JobAccepted},
                query={"wait_s": wait_s},
                body={"threshold": threshold, "dry_run": dry_run},
            )
        )
