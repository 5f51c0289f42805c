"""Operations of the section `figures`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from souvenir_client.aio.transport import AsyncTransport
from souvenir_client.calls import NOT_SENT, Call, NotSent, Repeat
from souvenir_client.records.figures import MetricsResponse, StatsResponse, UsageResponse


class AsyncFigures:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def usage(self, *, period: str | NotSent = NOT_SENT, session_id: str | NotSent = NOT_SENT) -> UsageResponse:
        """Say that what clients do is not tracked. `GET /usage`."""
        return await self._transport.send(
            Call(
                "GET",
                "/usage",
                {200: UsageResponse},
                query={"period": period, "session_id": session_id},
                repeat=Repeat.SAFE,
            )
        )

    async def stats(self) -> StatsResponse:
        """Get what the namespace holds. `GET /stats`."""
        return await self._transport.send(Call("GET", "/stats", {200: StatsResponse}, repeat=Repeat.SAFE))

    async def metrics(self) -> MetricsResponse:
        """Get what the process was asked and what it takes, as Prometheus reads it or, if `Accept` names it, as JSON.

        `GET /metrics`.
        """
        return await self._transport.send(Call("GET", "/metrics", {200: MetricsResponse}, repeat=Repeat.SAFE))
