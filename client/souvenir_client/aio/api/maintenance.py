"""Operations of the section `maintenance`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from souvenir_client.aio.transport import AsyncTransport
from souvenir_client.calls import NOT_SENT, Call, NotSent
from souvenir_client.records.common import JobAccepted
from souvenir_client.records.maintenance import (
    CompactResponse,
    ConsolidateResponse,
    PolicyResponse,
    PruneResponse,
    ReembedResponse,
    ReloadResponse,
)


class AsyncMaintenance:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def reembed(
        self, *, wait_s: float | NotSent = NOT_SENT, model: str | NotSent | None = NOT_SENT
    ) -> ReembedResponse | JobAccepted:
        """Embed every passage of every namespace with another model, which then takes over; searches go on meanwhile.

        `POST /maintenance/reembed`.
        """
        return await self._transport.send(
            Call(
                "POST",
                "/maintenance/reembed",
                {200: ReembedResponse, 202: JobAccepted},
                query={"wait_s": wait_s},
                body={"model": model},
            )
        )

    async def reload_embedder(self) -> ReloadResponse:
        """Load the embedding model again, and use it from now on if it is still the one that made the vectors.

        `POST /maintenance/embedder/reload`.
        """
        return await self._transport.send(Call("POST", "/maintenance/embedder/reload", {200: ReloadResponse}))

    async def compact(
        self, *, wait_s: float | NotSent = NOT_SENT, threshold: float | NotSent = NOT_SENT
    ) -> CompactResponse | JobAccepted:
        """Show which memories of one source say nearly the same, and change nothing. `POST /maintenance/compact`."""
        return await self._transport.send(
            Call(
                "POST",
                "/maintenance/compact",
                {200: CompactResponse, 202: JobAccepted},
                query={"wait_s": wait_s},
                body={"threshold": threshold},
            )
        )

    async def consolidate(
        self,
        *,
        dry_run: bool | NotSent = NOT_SENT,
        source_prefix: str | NotSent = NOT_SENT,
        wait_s: float | NotSent = NOT_SENT,
    ) -> ConsolidateResponse | JobAccepted:
        """Let the language model write one text in the place of memories of one source that say nearly the same.

        `POST /maintenance/consolidate`.
        """
        return await self._transport.send(
            Call(
                "POST",
                "/maintenance/consolidate",
                {200: ConsolidateResponse, 202: JobAccepted},
                query={"dry_run": dry_run, "source_prefix": source_prefix, "wait_s": wait_s},
            )
        )

    async def prune(
        self,
        *,
        dry_run: bool | NotSent = NOT_SENT,
        older_than_days: int | NotSent = NOT_SENT,
        wait_s: float | NotSent = NOT_SENT,
    ) -> PruneResponse | JobAccepted:
        """Delete archived memories for good that nobody changed for long; pinned ones stay, and a backup is made first.

        `POST /maintenance/prune`.
        """
        return await self._transport.send(
            Call(
                "POST",
                "/maintenance/prune",
                {200: PruneResponse, 202: JobAccepted},
                query={"dry_run": dry_run, "older_than_days": older_than_days, "wait_s": wait_s},
            )
        )

    async def enforce_policies(
        self, *, dry_run: bool | NotSent = NOT_SENT, wait_s: float | NotSent = NOT_SENT
    ) -> PolicyResponse | JobAccepted:
        """Archive memories that are older or less sure than the extraction profile of their source allows.

        `POST /maintenance/enforce-policies`.
        """
        return await self._transport.send(
            Call(
                "POST",
                "/maintenance/enforce-policies",
                {200: PolicyResponse, 202: JobAccepted},
                query={"dry_run": dry_run, "wait_s": wait_s},
            )
        )
