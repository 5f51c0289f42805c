"""Operations of the section `privacy`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from souvenir_client.calls import NOT_SENT, Call, NotSent, Repeat, segment
from souvenir_client.records.common import JobAccepted
from souvenir_client.records.enums import Action
from souvenir_client.records.privacy import EraseResponse, PolicyRecord, RescanResponse
from souvenir_client.sync.transport import Transport


class AgentsOfPrivacy:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def policy(self, agent_name: str) -> PolicyRecord:
        """Get what holds for an agent: its own policy, and the rules file for what that leaves out.

        `GET /agents/{agent_name}/policy`.
        """
        return self._transport.send(
            Call("GET", f"/agents/{segment(agent_name)}/policy", {200: PolicyRecord}, repeat=Repeat.SAFE)
        )

    def set_policy(
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
        return self._transport.send(
            Call(
                "PUT",
                f"/agents/{segment(agent_name)}/policy",
                {200: PolicyRecord},
                body={"secrets": secrets, "pii": pii, "hidden_topics": hidden_topics},
                repeat=Repeat.SAFE,
            )
        )


class Privacy:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def rescan(self, *, wait_s: float | NotSent = NOT_SENT) -> RescanResponse | JobAccepted:
        """Redact and flag, by today's rules and the agent's policy, everything that the namespace stored before.

        `POST /privacy/rescan`.
        """
        return self._transport.send(
            Call("POST", "/privacy/rescan", {200: RescanResponse, 202: JobAccepted}, query={"wait_s": wait_s})
        )

    def erase(
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
        return self._transport.send(
            Call(
                "POST",
                "/erase",
                {200: EraseResponse, 202: JobAccepted},
                query={"wait_s": wait_s},
                body={"selector": selector, "confirm": confirm, "backups": backups},
            )
        )
