"""Operations of the section `figures`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from souvenir_client.calls import NOT_SENT, Call, NotSent, Repeat
from souvenir_client.records.figures import MetricsResponse, StatsResponse, UsageResponse
from souvenir_client.sync.transport import Transport


class Figures:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def usage(self, *, period: str | NotSent = NOT_SENT, session_id: str | NotSent = NOT_SENT) -> UsageResponse:
        """Say that what clients do is not tracked. `GET /usage`."""
        return self._transport.send(
            Call(
                "GET",
                "/usage",
                {200: UsageResponse},
                query={"period": period, "session_id": session_id},
                repeat=Repeat.SAFE,
            )
        )

    def stats(self) -> StatsResponse:
        """Get what the namespace holds. `GET /stats`."""
        return self._transport.send(Call("GET", "/stats", {200: StatsResponse}, repeat=Repeat.SAFE))

    def metrics(self) -> MetricsResponse:
        """Get what the process was asked and what it takes, as Prometheus reads it or, if `Accept` names it, as JSON.

        `GET /metrics`.
        """
        return self._transport.send(Call("GET", "/metrics", {200: MetricsResponse}, repeat=Repeat.SAFE))
