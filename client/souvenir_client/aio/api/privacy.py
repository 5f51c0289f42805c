"""Operations of the section `privacy`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from souvenir_client.aio.transport import AsyncTransport
from souvenir_client.calls import NOT_SENT, Call, NotSent, Repeat, segment
from souvenir_client.records.common import JobAccepted
from souvenir_client.records.enums import Action
from souvenir_client.records.privacy import EraseResponse, PolicyRecord, RescanResponse


class AsyncAgentsOfPrivacy:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def policy(self, agent_name: str) -> PolicyRecord:
        """Get what holds for an agent: its own policy, and the rules file for what that leaves out.

        `GET /agents/{agent_name}/policy`.
        """
        return await self._transport.send(
            Call("GET", f"/agents/{segment(agent_name)}/policy", {200: PolicyRecord}, repeat=Repeat.SAFE)
        )

    async def set_policy(
        self,
        agent_name: str,
        *,
        secrets: Action | NotSent | None = NOT_SENT,
        pii: Action | NotSent | None = NOT_SENT,
        hidden_topics: Sequence[str] | NotSent | None = NOT_SENT,
    ) -> PolicyRecord:
        """Set what an agent does from now on about secrets, personal data and sensitive topics.

        `PUT /agents/{agent_name}/policy`.
        """
        return await self._transport.send(
            Call(
                "PUT",
                f"/agents/{segment(agent_name)}/policy",
                {200: PolicyRecord},
                body={"secrets": secrets, "pii": pii, "hidden_topics": hidden_topics},
                repeat=Repeat.SAFE,
            )
        )


class AsyncPrivacy:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def rescan(self, *, wait_s: float | NotSent = NOT_SENT) -> RescanResponse | JobAccepted:
        """Redact and flag, by today's rules and the agent's policy, everything that the namespace stored before.

        `POST /privacy/rescan`.
        """
        return await self._transport.send(
            Call("POST", "/privacy/rescan", {200: RescanResponse, 202: JobAccepted}, query={"wait_s": wait_s})
        )

    async def erase(
        self,
        *,
        selector: Mapping[str, Any],
        wait_s: float | NotSent = NOT_SENT,
        confirm: bool | NotSent = NOT_SENT,
        backups: bool | NotSent = NOT_SENT,
    ) -> EraseResponse | JobAccepted:
        """Erase an agent or a part of what it has, so that no restore brings it back, and answer what went.

        `POST /erase`.
        """
        return await self._transport.send(
            Call(
                "POST",
                "/erase",
                {200: EraseResponse, 202: JobAccepted},
                query={"wait_s": wait_s},
                body={"selector": selector, "confirm": confirm, "backups": backups},
            )
        )
