"""Operations of the section `health`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from souvenir_client.calls import Call, Repeat
from souvenir_client.records.health import HealthResponse, ReadyResponse
from souvenir_client.sync.transport import Transport


class Health:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def check(self) -> HealthResponse:
        """Answer at once, whatever else is being done. `GET /health`."""
        return self._transport.send(Call("GET", "/health", {200: HealthResponse}, repeat=Repeat.SAFE))

    def ready(self) -> ReadyResponse:
        """Tell whether searches are answered now, and from all that is stored. `GET /health/ready`."""
        return self._transport.send(Call("GET", "/health/ready", {200: ReadyResponse}, repeat=Repeat.SAFE))
