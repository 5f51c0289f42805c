"""Operations of the section `locrits`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from datetime import datetime

from souvenir_client.calls import NOT_SENT, Call, NotSent, Repeat, segment
from souvenir_client.records.enums import SearchStrategy
from souvenir_client.records.locrits import LocritAiSearchResponse, LocritSearchResponse
from souvenir_client.sync.transport import Transport


class Locrits:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def search(
        self,
        name: str,
        *,
        q: str,
        limit: int | NotSent = NOT_SENT,
        strategy: SearchStrategy | NotSent = NOT_SENT,
        since: str | datetime | NotSent | None = NOT_SENT,
        until: str | datetime | NotSent | None = NOT_SENT,
        user: str | NotSent | None = NOT_SENT,
        session: str | NotSent | None = NOT_SENT,
    ) -> LocritSearchResponse:
        """Find what answers a query best in what was said and what is remembered, by one of the strategies.

        `GET /api/locrits/{name}/memory/search`.
        """
        return self._transport.send(
            Call(
                "GET",
                f"/api/locrits/{segment(name)}/memory/search",
                {200: LocritSearchResponse},
                query={
                    "q": q,
                    "limit": limit,
                    "strategy": strategy,
                    "since": since,
                    "until": until,
                    "user": user,
                    "session": session,
                },
                repeat=Repeat.SAFE,
            )
        )

    def ai_search(
        self, name: str, *, q: str, limit: int | NotSent = NOT_SENT, strategy: SearchStrategy | NotSent = NOT_SENT
    ) -> LocritAiSearchResponse:
        """Find the same, in the words of the first version of that wire.

        `GET /api/v1/locrits/{name}/memory/ai-search`.
        """
        return self._transport.send(
            Call(
                "GET",
                f"/api/v1/locrits/{segment(name)}/memory/ai-search",
                {200: LocritAiSearchResponse},
                query={"q": q, "limit": limit, "strategy": strategy},
                repeat=Repeat.SAFE,
            )
        )
