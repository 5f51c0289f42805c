"""Operations of the section `blocks`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from souvenir_client.calls import NOT_SENT, Call, Listing, NotSent, Repeat, segment
from souvenir_client.records.blocks import BlockHistoryPage, DeletedBlock
from souvenir_client.records.common import MemoryBlock
from souvenir_client.sync.transport import Transport


class Blocks:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self,
        *,
        agent_name: str,
        label: str,
        value: str,
        idempotency_key: str | NotSent = NOT_SENT,
        description: str | NotSent | None = NOT_SENT,
        limit: int | NotSent = NOT_SENT,
        read_only: bool | NotSent = NOT_SENT,
    ) -> MemoryBlock:
        """Make a block of text that is always in the agent's context; an agent that is not there is made too.

        `POST /memory-blocks`.
        """
        return self._transport.send(
            Call(
                "POST",
                "/memory-blocks",
                {200: MemoryBlock},
                headers={"Idempotency-Key": idempotency_key},
                body={
                    "agent_name": agent_name,
                    "label": label,
                    "value": value,
                    "description": description,
                    "limit": limit,
                    "read_only": read_only,
                },
                repeat=Repeat.KEYED,
            )
        )

    def list(
        self, agent_name: str, *, offset: int | NotSent = NOT_SENT, limit: int | NotSent = NOT_SENT
    ) -> Listing[MemoryBlock]:
        """List an agent's blocks in the order in which they were made. `GET /memory-blocks/{agent_name}`."""
        return self._transport.send(
            Call(
                "GET",
                f"/memory-blocks/{segment(agent_name)}",
                {200: list[MemoryBlock]},
                query={"offset": offset, "limit": limit},
                repeat=Repeat.SAFE,
            )
        )

    def get(self, agent_name: str, label: str) -> MemoryBlock:
        """Get a block by its label. `GET /memory-blocks/{agent_name}/{label}`."""
        return self._transport.send(
            Call(
                "GET", f"/memory-blocks/{segment(agent_name)}/{segment(label)}", {200: MemoryBlock}, repeat=Repeat.SAFE
            )
        )

    def update(
        self,
        agent_name: str,
        label: str,
        *,
        if_match: str | NotSent = NOT_SENT,
        value: str | NotSent | None = NOT_SENT,
        description: str | NotSent | None = NOT_SENT,
        limit: int | NotSent | None = NOT_SENT,
        read_only: bool | NotSent | None = NOT_SENT,
    ) -> MemoryBlock:
        """Change the fields that are given, if the block is still one of the versions that If-Match names.

        `PUT /memory-blocks/{agent_name}/{label}`.
        """
        return self._transport.send(
            Call(
                "PUT",
                f"/memory-blocks/{segment(agent_name)}/{segment(label)}",
                {200: MemoryBlock},
                headers={"If-Match": if_match},
                body={"value": value, "description": description, "limit": limit, "read_only": read_only},
            )
        )

    def delete(self, agent_name: str, label: str) -> DeletedBlock:
        """Forget a block and all its versions for good, also a read-only one.

        `DELETE /memory-blocks/{agent_name}/{label}`.
        """
        return self._transport.send(
            Call("DELETE", f"/memory-blocks/{segment(agent_name)}/{segment(label)}", {200: DeletedBlock})
        )

    def history(
        self, agent_name: str, label: str, *, offset: int | NotSent = NOT_SENT, limit: int | NotSent = NOT_SENT
    ) -> BlockHistoryPage:
        """List what a block was in every version, newest first. `GET /memory-blocks/{agent_name}/{label}/history`."""
        return self._transport.send(
            Call(
                "GET",
                f"/memory-blocks/{segment(agent_name)}/{segment(label)}/history",
                {200: BlockHistoryPage},
                query={"offset": offset, "limit": limit},
                repeat=Repeat.SAFE,
            )
        )
