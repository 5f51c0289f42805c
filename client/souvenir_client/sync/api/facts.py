"""Operations of the section `facts`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Sequence

from souvenir_client.calls import NOT_SENT, Call, NotSent, Repeat, segment
from souvenir_client.records.common import JobAccepted
from souvenir_client.records.facts import FactsResponse, SetFactsResponse, SplitResponse
from souvenir_client.sync.transport import Transport


class Facts:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(
        self,
        *,
        memory_id: int | NotSent | None = NOT_SENT,
        offset: int | NotSent = NOT_SENT,
        limit: int | NotSent = NOT_SENT,
    ) -> FactsResponse:
        """List the facts of one memory, or of all of them, page by page. `GET /facts`."""
        return self._transport.send(
            Call(
                "GET",
                "/facts",
                {200: FactsResponse},
                query={"memory_id": memory_id, "offset": offset, "limit": limit},
                repeat=Repeat.SAFE,
            )
        )

    def set(self, memory_id: int, *, facts: Sequence[str] | NotSent | None = NOT_SENT) -> SetFactsResponse:
        """Give a memory these facts in the place of those that it has, or without any split its text anew.

        `PUT /memory/{memory_id}/facts`.
        """
        return self._transport.send(
            Call(
                "PUT",
                f"/memory/{segment(memory_id)}/facts",
                {200: SetFactsResponse},
                body={"facts": facts},
                repeat=Repeat.SAFE,
            )
        )

    def split(
        self,
        *,
        wait_s: float | NotSent = NOT_SENT,
        source_prefix: str | NotSent = NOT_SENT,
        limit: int | NotSent = NOT_SENT,
    ) -> SplitResponse | JobAccepted:
        """Split living memories that have no facts, and those that wait for it. `POST /facts/split`."""
        return self._transport.send(
            Call(
                "POST",
                "/facts/split",
                {200: SplitResponse, 202: JobAccepted},
                query={"wait_s": wait_s},
                body={"source_prefix": source_prefix, "limit": limit},
            )
        )
