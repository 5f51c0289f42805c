"""Operations of the section `agents`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from souvenir_client.calls import NOT_SENT, Call, NotSent, Repeat, segment
from souvenir_client.records.agents import (
    AccessRecord,
    AgentPage,
    AgentRecord,
    AgentSearchResponse,
    AgentStatsResponse,
    ConceptHistory,
    InsightsRecord,
    RemovedResponse,
    StateConceptsResponse,
    TopicDetailsRecord,
    TopicPage,
    TopicRecord,
    UserPage,
)
from souvenir_client.records.enums import GraphFileFormat, MessageRole, RecordKind, SearchStrategy
from souvenir_client.sync.transport import Transport


class Agents:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def create(
        self,
        *,
        name: str,
        idempotency_key: str | NotSent = NOT_SENT,
        metadata: Mapping[str, Any] | NotSent | None = NOT_SENT,
    ) -> AgentRecord:
        """Make an agent, or get the one that has the name. `POST /agents`."""
        return self._transport.send(
            Call(
                "POST",
                "/agents",
                {200: AgentRecord},
                headers={"Idempotency-Key": idempotency_key},
                body={"name": name, "metadata": metadata},
                repeat=Repeat.KEYED,
            )
        )

    def list(self, *, offset: int | NotSent = NOT_SENT, limit: int | NotSent = NOT_SENT) -> AgentPage:
        """List the agents that the key may see. `GET /agents`."""
        return self._transport.send(
            Call("GET", "/agents", {200: AgentPage}, query={"offset": offset, "limit": limit}, repeat=Repeat.SAFE)
        )

    def get(self, agent_name: str) -> AgentRecord:
        """Get an agent by its name. `GET /agents/{agent_name}`."""
        return self._transport.send(
            Call("GET", f"/agents/{segment(agent_name)}", {200: AgentRecord}, repeat=Repeat.SAFE)
        )

    def delete(self, agent_name: str) -> RemovedResponse:
        """Forget an agent with all that its namespace holds; its jobs end, and its name is free at once.

        `DELETE /agents/{agent_name}`.
        """
        return self._transport.send(Call("DELETE", f"/agents/{segment(agent_name)}", {200: RemovedResponse}))

    def access(self, agent_name: str) -> AccessRecord:
        """Get what of an agent may be read with keys that are no admin's. `GET /agents/{agent_name}/access`."""
        return self._transport.send(
            Call("GET", f"/agents/{segment(agent_name)}/access", {200: AccessRecord}, repeat=Repeat.SAFE)
        )

    def set_access(
        self,
        agent_name: str,
        *,
        quick_memory: bool | NotSent | None = NOT_SENT,
        full_memory: bool | NotSent | None = NOT_SENT,
        logs: bool | NotSent | None = NOT_SENT,
    ) -> AccessRecord:
        """Give or take what of an agent may be read; it holds from the next request on.

        `PUT /agents/{agent_name}/access`.
        """
        return self._transport.send(
            Call(
                "PUT",
                f"/agents/{segment(agent_name)}/access",
                {200: AccessRecord},
                body={"quick_memory": quick_memory, "full_memory": full_memory, "logs": logs},
                repeat=Repeat.SAFE,
            )
        )

    def search(
        self,
        agent_name: str,
        *,
        query: str,
        limit: int | NotSent | None = NOT_SENT,
        kinds: Sequence[RecordKind] | NotSent = NOT_SENT,
        since: str | datetime | NotSent | None = NOT_SENT,
        until: str | datetime | NotSent | None = NOT_SENT,
        session_id: str | NotSent | None = NOT_SENT,
        exclude_session_id: str | NotSent | None = NOT_SENT,
        user: str | NotSent | None = NOT_SENT,
        role: MessageRole | NotSent | None = NOT_SENT,
        strategy: SearchStrategy | NotSent = NOT_SENT,
        auto_intent: bool | NotSent = NOT_SENT,
        reference_date: str | datetime | NotSent | None = NOT_SENT,
    ) -> AgentSearchResponse:
        """Find what answers a query best among an agent's messages and memories, in one ranking.

        `POST /agents/{agent_name}/search`.
        """
        return self._transport.send(
            Call(
                "POST",
                f"/agents/{segment(agent_name)}/search",
                {200: AgentSearchResponse},
                body={
                    "query": query,
                    "limit": limit,
                    "kinds": kinds,
                    "since": since,
                    "until": until,
                    "session_id": session_id,
                    "exclude_session_id": exclude_session_id,
                    "user": user,
                    "role": role,
                    "strategy": strategy,
                    "auto_intent": auto_intent,
                    "reference_date": reference_date,
                },
                repeat=Repeat.SAFE,
            )
        )

    def users(self, agent_name: str, *, offset: int | NotSent = NOT_SENT, limit: int | NotSent = NOT_SENT) -> UserPage:
        """List whom an agent talks with, in the order of their names. `GET /agents/{agent_name}/users`."""
        return self._transport.send(
            Call(
                "GET",
                f"/agents/{segment(agent_name)}/users",
                {200: UserPage},
                query={"offset": offset, "limit": limit},
                repeat=Repeat.SAFE,
            )
        )

    def stats(self, agent_name: str) -> AgentStatsResponse:
        """Count an agent's messages, sessions, users, blocks and memories. `GET /agents/{agent_name}/stats`."""
        return self._transport.send(
            Call("GET", f"/agents/{segment(agent_name)}/stats", {200: AgentStatsResponse}, repeat=Repeat.SAFE)
        )

    def export(self, agent_name: str) -> Iterator[dict[str, Any]]:
        """Stream one state of all that an agent has, a line of JSON each. `GET /agents/{agent_name}/export`."""
        return self._transport.lines(
            Call("GET", f"/agents/{segment(agent_name)}/export", {200: Any}, repeat=Repeat.SAFE)
        )

    def graph(
        self, agent_name: str, *, format: GraphFileFormat | NotSent = NOT_SENT, embeddings: bool | NotSent = NOT_SENT
    ) -> Iterator[bytes]:
        """Stream one state of an agent's graph: who said what in which session, and what it is about.

        `GET /agents/{agent_name}/graph`.
        """
        return self._transport.pieces(
            Call(
                "GET",
                f"/agents/{segment(agent_name)}/graph",
                {200: Any},
                query={"format": format, "embeddings": embeddings},
                repeat=Repeat.SAFE,
            )
        )

    def state_concepts(
        self,
        agent_name: str,
        *,
        concepts: Sequence[Mapping[str, Any]] | NotSent = NOT_SENT,
        relations: Sequence[Mapping[str, Any]] | NotSent = NOT_SENT,
    ) -> StateConceptsResponse:
        """Say what concepts of an agent are called, are, and are to each other, in one transaction; once is enough.

        `POST /agents/{agent_name}/graph`.
        """
        return self._transport.send(
            Call(
                "POST",
                f"/agents/{segment(agent_name)}/graph",
                {200: StateConceptsResponse},
                body={"concepts": concepts, "relations": relations},
                repeat=Repeat.SAFE,
            )
        )

    def delete_user(self, agent_name: str, user: str) -> RemovedResponse:
        """Forget a user, their messages, the sessions in which nobody else has one, and what was learned with them.

        `DELETE /agents/{agent_name}/users/{user}`.
        """
        return self._transport.send(
            Call("DELETE", f"/agents/{segment(agent_name)}/users/{segment(user)}", {200: RemovedResponse})
        )

    def topics(
        self, agent_name: str, *, offset: int | NotSent = NOT_SENT, limit: int | NotSent = NOT_SENT
    ) -> TopicPage:
        """List what an agent's sessions are about; what was said in the last half minute may be missing.

        `GET /agents/{agent_name}/topics`.
        """
        return self._transport.send(
            Call(
                "GET",
                f"/agents/{segment(agent_name)}/topics",
                {200: TopicPage},
                query={"offset": offset, "limit": limit},
                repeat=Repeat.SAFE,
            )
        )

    def topic(self, agent_name: str, topic_id: int) -> TopicDetailsRecord:
        """Get a topic with its sessions and the messages that discuss it most.

        `GET /agents/{agent_name}/topics/{topic_id}`.
        """
        return self._transport.send(
            Call(
                "GET",
                f"/agents/{segment(agent_name)}/topics/{segment(topic_id)}",
                {200: TopicDetailsRecord},
                repeat=Repeat.SAFE,
            )
        )

    def describe_topic(
        self,
        agent_name: str,
        topic_id: int,
        *,
        name: str | NotSent | None = NOT_SENT,
        summary: str | NotSent | None = NOT_SENT,
    ) -> TopicRecord:
        """Say what a topic is called or what it is about; it keeps that while it goes on.

        `PATCH /agents/{agent_name}/topics/{topic_id}`.
        """
        return self._transport.send(
            Call(
                "PATCH",
                f"/agents/{segment(agent_name)}/topics/{segment(topic_id)}",
                {200: TopicRecord},
                body={"name": name, "summary": summary},
            )
        )

    def insights(
        self,
        agent_name: str,
        *,
        since: str | datetime | NotSent | None = NOT_SENT,
        until: str | datetime | NotSent | None = NOT_SENT,
    ) -> InsightsRecord:
        """Get how an agent is used and how what it knows hangs together; the time is counted in UTC.

        `GET /agents/{agent_name}/insights`.
        """
        return self._transport.send(
            Call(
                "GET",
                f"/agents/{segment(agent_name)}/insights",
                {200: InsightsRecord},
                query={"since": since, "until": until},
                repeat=Repeat.SAFE,
            )
        )

    def concept_history(
        self,
        agent_name: str,
        concept_id: int,
        *,
        since: str | datetime | NotSent | None = NOT_SENT,
        until: str | datetime | NotSent | None = NOT_SENT,
        split: str | NotSent | None = NOT_SENT,
    ) -> ConceptHistory:
        """Get what was mentioned with a concept in each month, and what changed since the middle one, or since `split`.

        `GET /agents/{agent_name}/concepts/{concept_id}/history`.
        """
        return self._transport.send(
            Call(
                "GET",
                f"/agents/{segment(agent_name)}/concepts/{segment(concept_id)}/history",
                {200: ConceptHistory},
                query={"since": since, "until": until, "split": split},
                repeat=Repeat.SAFE,
            )
        )


class MessagesOfAgents:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def delete(self, agent_name: str, message_id: str) -> RemovedResponse:
        """Forget a message. `DELETE /messages/{agent_name}/{message_id}`."""
        return self._transport.send(
            Call("DELETE", f"/messages/{segment(agent_name)}/{segment(message_id)}", {200: RemovedResponse})
        )


class SessionsOfAgents:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def delete(self, agent_name: str, session_id: str) -> RemovedResponse:
        """Forget a session with every message of it, and what was learned in it.

        `DELETE /sessions/{agent_name}/{session_id}`.
        """
        return self._transport.send(
            Call("DELETE", f"/sessions/{segment(agent_name)}/{segment(session_id)}", {200: RemovedResponse})
        )
