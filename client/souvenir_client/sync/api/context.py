"""Operations of the section `context`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Sequence

from souvenir_client.calls import NOT_SENT, Call, NotSent, Repeat, segment
from souvenir_client.records.context import ContextResponse
from souvenir_client.sync.transport import Transport


class Context:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def build(
        self,
        agent_name: str,
        *,
        query: str,
        session_id: str | NotSent | None = NOT_SENT,
        user: str | NotSent | None = NOT_SENT,
        max_tokens: int | NotSent = NOT_SENT,
        deadline_ms: int | NotSent = NOT_SENT,
        exclude_topics: Sequence[str] | NotSent = NOT_SENT,
    ) -> ContextResponse:
        """Get an agent's blocks and what was said before that bears on a query, as records and as text for a prompt.

        `POST /context/{agent_name}`.
        """
        return self._transport.send(
            Call(
                "POST",
                f"/context/{segment(agent_name)}",
                {200: ContextResponse},
                body={
                    "query": query,
                    "session_id": session_id,
                    "user": user,
                    "max_tokens": max_tokens,
                    "deadline_ms": deadline_ms,
                    "exclude_topics": exclude_topics,
                },
                repeat=Repeat.SAFE,
            )
        )
