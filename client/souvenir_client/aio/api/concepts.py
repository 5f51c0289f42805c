"""Operations of the section `concepts`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Sequence

from souvenir_client.aio.transport import AsyncTransport
from souvenir_client.calls import NOT_SENT, Call, NotSent, Repeat, segment
from souvenir_client.records.common import JobAccepted
from souvenir_client.records.concepts import (
    ConceptDetailsRecord,
    ConceptPage,
    ConceptRecord,
    ConceptRelation,
    ConceptRelations,
    DescribeJob,
    DescribeResponse,
    RelatedConcepts,
    SummaryResponse,
    UndoDescribeResponse,
)


class AsyncConcepts:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def summary(self, agent_name: str) -> SummaryResponse:
        """Say how much an agent has, what was said last, and which concepts tell most of it.

        `GET /agents/{agent_name}/summary`.
        """
        return await self._transport.send(
            Call("GET", f"/agents/{segment(agent_name)}/summary", {200: SummaryResponse}, repeat=Repeat.SAFE)
        )

    async def list(
        self, agent_name: str, *, offset: int | NotSent = NOT_SENT, limit: int | NotSent = NOT_SENT
    ) -> ConceptPage:
        """List what an agent's messages and memories mention, those first that tell most of it.

        `GET /agents/{agent_name}/concepts`.
        """
        return await self._transport.send(
            Call(
                "GET",
                f"/agents/{segment(agent_name)}/concepts",
                {200: ConceptPage},
                query={"offset": offset, "limit": limit},
                repeat=Repeat.SAFE,
            )
        )

    async def get(self, agent_name: str, concept_id: int) -> ConceptDetailsRecord:
        """Get a concept with what it is and where it is mentioned. `GET /agents/{agent_name}/concepts/{concept_id}`."""
        return await self._transport.send(
            Call(
                "GET",
                f"/agents/{segment(agent_name)}/concepts/{segment(concept_id)}",
                {200: ConceptDetailsRecord},
                repeat=Repeat.SAFE,
            )
        )

    async def update(
        self,
        agent_name: str,
        concept_id: int,
        *,
        name: str | NotSent | None = NOT_SENT,
        description: str | NotSent | None = NOT_SENT,
        kind: str | NotSent | None = NOT_SENT,
        aliases: Sequence[str] | NotSent | None = NOT_SENT,
    ) -> ConceptRecord:
        """Say what a concept is called and what it is, in the place of what callers said before.

        `PATCH /agents/{agent_name}/concepts/{concept_id}`.
        """
        return await self._transport.send(
            Call(
                "PATCH",
                f"/agents/{segment(agent_name)}/concepts/{segment(concept_id)}",
                {200: ConceptRecord},
                body={"name": name, "description": description, "kind": kind, "aliases": aliases},
            )
        )

    async def delete(self, agent_name: str, concept_id: int) -> ConceptRecord:
        """Forget a concept under all of its names; texts that mention it stay, and it is not read in them again.

        `DELETE /agents/{agent_name}/concepts/{concept_id}`.
        """
        return await self._transport.send(
            Call("DELETE", f"/agents/{segment(agent_name)}/concepts/{segment(concept_id)}", {200: ConceptRecord})
        )

    async def related(
        self, agent_name: str, concept_id: int, *, depth: int | NotSent = NOT_SENT, limit: int | NotSent = NOT_SENT
    ) -> RelatedConcepts:
        """List the concepts to which the strongest paths lead from one.

        `GET /agents/{agent_name}/concepts/{concept_id}/related`.
        """
        return await self._transport.send(
            Call(
                "GET",
                f"/agents/{segment(agent_name)}/concepts/{segment(concept_id)}/related",
                {200: RelatedConcepts},
                query={"depth": depth, "limit": limit},
                repeat=Repeat.SAFE,
            )
        )

    async def find(self, agent_name: str, *, name: str) -> ConceptDetailsRecord:
        """Get the concept that is called so, however the name is written. `GET /agents/{agent_name}/concept`."""
        return await self._transport.send(
            Call(
                "GET",
                f"/agents/{segment(agent_name)}/concept",
                {200: ConceptDetailsRecord},
                query={"name": name},
                repeat=Repeat.SAFE,
            )
        )

    async def related_to(
        self, agent_name: str, *, name: str, depth: int | NotSent = NOT_SENT, limit: int | NotSent = NOT_SENT
    ) -> RelatedConcepts:
        """List the concepts to which the strongest paths lead from the one that is called so.

        `GET /agents/{agent_name}/concept/related`.
        """
        return await self._transport.send(
            Call(
                "GET",
                f"/agents/{segment(agent_name)}/concept/related",
                {200: RelatedConcepts},
                query={"name": name, "depth": depth, "limit": limit},
                repeat=Repeat.SAFE,
            )
        )

    async def relations(self, agent_name: str, concept_id: int) -> ConceptRelations:
        """List the relations that somebody stated of a concept, from it and to it.

        `GET /agents/{agent_name}/concepts/{concept_id}/relations`.
        """
        return await self._transport.send(
            Call(
                "GET",
                f"/agents/{segment(agent_name)}/concepts/{segment(concept_id)}/relations",
                {200: ConceptRelations},
                repeat=Repeat.SAFE,
            )
        )

    async def relate(self, agent_name: str, concept_id: int, *, to: int, type: str) -> ConceptRelation:
        """State how a concept relates to another one; stating it again changes nothing.

        `PUT /agents/{agent_name}/concepts/{concept_id}/relations`.
        """
        return await self._transport.send(
            Call(
                "PUT",
                f"/agents/{segment(agent_name)}/concepts/{segment(concept_id)}/relations",
                {200: ConceptRelation},
                body={"to": to, "type": type},
                repeat=Repeat.SAFE,
            )
        )

    async def unrelate(self, agent_name: str, concept_id: int, *, to: int, type: str) -> ConceptRelations:
        """Take a relation back, whoever stated it; the answer says what was removed.

        `DELETE /agents/{agent_name}/concepts/{concept_id}/relations`.
        """
        return await self._transport.send(
            Call(
                "DELETE",
                f"/agents/{segment(agent_name)}/concepts/{segment(concept_id)}/relations",
                {200: ConceptRelations},
                query={"to": to, "type": type},
            )
        )

    async def describe(
        self,
        agent_name: str,
        *,
        wait_s: float | NotSent = NOT_SENT,
        session_id: str | NotSent | None = NOT_SENT,
        limit: int | NotSent = NOT_SENT,
    ) -> DescribeResponse | JobAccepted:
        """Let the language model claim relations, descriptions, other names and kinds from what it has not read yet.

        `POST /agents/{agent_name}/graph/describe`.
        """
        return await self._transport.send(
            Call(
                "POST",
                f"/agents/{segment(agent_name)}/graph/describe",
                {200: DescribeResponse, 202: JobAccepted},
                query={"wait_s": wait_s},
                body={"session_id": session_id, "limit": limit},
            )
        )

    async def claims(self, agent_name: str, job_id: str) -> DescribeJob:
        """Say how far such a job is, and what it claimed with the message that each claim rests on.

        `GET /agents/{agent_name}/graph/describe/{job_id}`.
        """
        return await self._transport.send(
            Call(
                "GET",
                f"/agents/{segment(agent_name)}/graph/describe/{segment(job_id)}",
                {200: DescribeJob},
                repeat=Repeat.SAFE,
            )
        )

    async def undo_claims(self, agent_name: str, job_id: str) -> UndoDescribeResponse:
        """Remove all that such a job claimed; what it read can be read again.

        `POST /agents/{agent_name}/graph/describe/{job_id}/undo`.
        """
        return await self._transport.send(
            Call(
                "POST",
                f"/agents/{segment(agent_name)}/graph/describe/{segment(job_id)}/undo",
                {200: UndoDescribeResponse},
            )
        )
