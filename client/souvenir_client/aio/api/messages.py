"""Operations of the section `messages`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from souvenir_client.aio.transport import AsyncTransport
from souvenir_client.calls import NOT_SENT, Call, Listing, NotSent, Repeat, segment
from souvenir_client.records.common import FoundMessage, MessageRecord, SessionRecord
from souvenir_client.records.enums import MessageRole
from souvenir_client.records.messages import ExplainMessagesResponse, MessageBatch, SessionPage


class AsyncMessages:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def add(
        self,
        *,
        role: MessageRole,
        content: str,
        agent_name: str,
        idempotency_key: str | NotSent = NOT_SENT,
        metadata: Mapping[str, Any] | NotSent | None = NOT_SENT,
        user: str | NotSent | None = NOT_SENT,
        name: str | NotSent | None = NOT_SENT,
        created_at: str | datetime | NotSent | None = NOT_SENT,
        session_id: str | NotSent | None = NOT_SENT,
    ) -> MessageRecord:
        """Store a message, and make its agent, user and session if they are new; it can be found from then on.

        `POST /messages`.
        """
        return await self._transport.send(
            Call(
                "POST",
                "/messages",
                {200: MessageRecord},
                headers={"Idempotency-Key": idempotency_key},
                body={
                    "role": role,
                    "content": content,
                    "metadata": metadata,
                    "user": user,
                    "name": name,
                    "created_at": created_at,
                    "agent_name": agent_name,
                    "session_id": session_id,
                },
                repeat=Repeat.KEYED,
            )
        )

    async def add_batch(
        self,
        *,
        agent_name: str,
        messages: Sequence[Mapping[str, Any]],
        idempotency_key: str | NotSent = NOT_SENT,
        session_id: str | NotSent | None = NOT_SENT,
    ) -> MessageBatch:
        """Store up to 1000 messages in one transaction, all or none, in their order and with their times.

        `POST /messages/batch`.
        """
        return await self._transport.send(
            Call(
                "POST",
                "/messages/batch",
                {200: MessageBatch},
                headers={"Idempotency-Key": idempotency_key},
                body={"agent_name": agent_name, "session_id": session_id, "messages": messages},
                repeat=Repeat.KEYED,
            )
        )

    async def search(
        self,
        *,
        agent_name: str,
        query: str,
        limit: int | NotSent | None = NOT_SENT,
        session_id: str | NotSent | None = NOT_SENT,
        user: str | NotSent | None = NOT_SENT,
        role: MessageRole | NotSent | None = NOT_SENT,
        since: str | datetime | NotSent | None = NOT_SENT,
        until: str | datetime | NotSent | None = NOT_SENT,
        exclude_session_id: str | NotSent | None = NOT_SENT,
        auto_intent: bool | NotSent = NOT_SENT,
        reference_date: str | datetime | NotSent | None = NOT_SENT,
        role_weight: float | NotSent | None = NOT_SENT,
    ) -> Listing[FoundMessage]:
        """Find the messages that answer a query best, by meaning and by words, among all that the agent has.

        `POST /messages/search`.
        """
        return await self._transport.send(
            Call(
                "POST",
                "/messages/search",
                {200: list[FoundMessage]},
                body={
                    "agent_name": agent_name,
                    "query": query,
                    "limit": limit,
                    "session_id": session_id,
                    "user": user,
                    "role": role,
                    "since": since,
                    "until": until,
                    "exclude_session_id": exclude_session_id,
                    "auto_intent": auto_intent,
                    "reference_date": reference_date,
                    "role_weight": role_weight,
                },
                repeat=Repeat.SAFE,
            )
        )

    async def explain(
        self,
        *,
        agent_name: str,
        query: str,
        limit: int | NotSent | None = NOT_SENT,
        session_id: str | NotSent | None = NOT_SENT,
        user: str | NotSent | None = NOT_SENT,
        role: MessageRole | NotSent | None = NOT_SENT,
        since: str | datetime | NotSent | None = NOT_SENT,
        until: str | datetime | NotSent | None = NOT_SENT,
        exclude_session_id: str | NotSent | None = NOT_SENT,
        auto_intent: bool | NotSent = NOT_SENT,
        reference_date: str | datetime | NotSent | None = NOT_SENT,
        role_weight: float | NotSent | None = NOT_SENT,
    ) -> ExplainMessagesResponse:
        """Search like `/messages/search`, and show what each score is made of. `POST /messages/search/explain`."""
        return await self._transport.send(
            Call(
                "POST",
                "/messages/search/explain",
                {200: ExplainMessagesResponse},
                body={
                    "agent_name": agent_name,
                    "query": query,
                    "limit": limit,
                    "session_id": session_id,
                    "user": user,
                    "role": role,
                    "since": since,
                    "until": until,
                    "exclude_session_id": exclude_session_id,
                    "auto_intent": auto_intent,
                    "reference_date": reference_date,
                    "role_weight": role_weight,
                },
                repeat=Repeat.SAFE,
            )
        )

    async def list(
        self,
        agent_name: str,
        *,
        offset: int | NotSent = NOT_SENT,
        limit: int | NotSent = NOT_SENT,
        session_id: str | NotSent | None = NOT_SENT,
        user: str | NotSent | None = NOT_SENT,
        role: MessageRole | NotSent | None = NOT_SENT,
        since: str | datetime | NotSent | None = NOT_SENT,
        until: str | datetime | NotSent | None = NOT_SENT,
    ) -> Listing[MessageRecord]:
        """List an agent's messages, most recent first. `GET /messages/{agent_name}`."""
        return await self._transport.send(
            Call(
                "GET",
                f"/messages/{segment(agent_name)}",
                {200: list[MessageRecord]},
                query={
                    "offset": offset,
                    "limit": limit,
                    "session_id": session_id,
                    "user": user,
                    "role": role,
                    "since": since,
                    "until": until,
                },
                repeat=Repeat.SAFE,
            )
        )

    async def get(self, agent_name: str, message_id: str) -> MessageRecord:
        """Get a message by its id. `GET /messages/{agent_name}/{message_id}`."""
        return await self._transport.send(
            Call(
                "GET",
                f"/messages/{segment(agent_name)}/{segment(message_id)}",
                {200: MessageRecord},
                repeat=Repeat.SAFE,
            )
        )

    async def update(
        self,
        agent_name: str,
        message_id: str,
        *,
        content: str | NotSent | None = NOT_SENT,
        metadata: Mapping[str, Any] | NotSent | None = NOT_SENT,
    ) -> MessageRecord:
        """Replace a message's content, its metadata or both; from then on it is found by its new content only.

        `PATCH /messages/{agent_name}/{message_id}`.
        """
        return await self._transport.send(
            Call(
                "PATCH",
                f"/messages/{segment(agent_name)}/{segment(message_id)}",
                {200: MessageRecord},
                body={"content": content, "metadata": metadata},
            )
        )


class AsyncSessionsOfMessages:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def start(
        self,
        *,
        agent_name: str,
        idempotency_key: str | NotSent = NOT_SENT,
        session_id: str | NotSent | None = NOT_SENT,
        user: str | NotSent | None = NOT_SENT,
        title: str | NotSent | None = NOT_SENT,
        metadata: Mapping[str, Any] | NotSent | None = NOT_SENT,
        started_at: str | datetime | NotSent | None = NOT_SENT,
    ) -> SessionRecord:
        """Start a session, and make its agent and user if they are new; a running one of that id is answered as it is.

        `POST /sessions`.
        """
        return await self._transport.send(
            Call(
                "POST",
                "/sessions",
                {200: SessionRecord},
                headers={"Idempotency-Key": idempotency_key},
                body={
                    "agent_name": agent_name,
                    "session_id": session_id,
                    "user": user,
                    "title": title,
                    "metadata": metadata,
                    "started_at": started_at,
                },
                repeat=Repeat.KEYED,
            )
        )

    async def list(
        self,
        agent_name: str,
        *,
        offset: int | NotSent = NOT_SENT,
        limit: int | NotSent = NOT_SENT,
        user: str | NotSent | None = NOT_SENT,
        open: bool | NotSent | None = NOT_SENT,
    ) -> SessionPage:
        """List an agent's sessions, newest first. `GET /sessions/{agent_name}`."""
        return await self._transport.send(
            Call(
                "GET",
                f"/sessions/{segment(agent_name)}",
                {200: SessionPage},
                query={"offset": offset, "limit": limit, "user": user, "open": open},
                repeat=Repeat.SAFE,
            )
        )

    async def get(self, agent_name: str, session_id: str) -> SessionRecord:
        """Get a session by its id. `GET /sessions/{agent_name}/{session_id}`."""
        return await self._transport.send(
            Call(
                "GET",
                f"/sessions/{segment(agent_name)}/{segment(session_id)}",
                {200: SessionRecord},
                repeat=Repeat.SAFE,
            )
        )

    async def update(
        self,
        agent_name: str,
        session_id: str,
        *,
        title: str | NotSent | None = NOT_SENT,
        metadata: Mapping[str, Any] | NotSent | None = NOT_SENT,
    ) -> SessionRecord:
        """Replace a session's title, its metadata or both. `PATCH /sessions/{agent_name}/{session_id}`."""
        return await self._transport.send(
            Call(
                "PATCH",
                f"/sessions/{segment(agent_name)}/{segment(session_id)}",
                {200: SessionRecord},
                body={"title": title, "metadata": metadata},
            )
        )

    async def messages(
        self, agent_name: str, session_id: str, *, offset: int | NotSent = NOT_SENT, limit: int | NotSent = NOT_SENT
    ) -> Listing[MessageRecord]:
        """List a session's messages in the order in which they came, oldest first.

        `GET /sessions/{agent_name}/{session_id}/messages`.
        """
        return await self._transport.send(
            Call(
                "GET",
                f"/sessions/{segment(agent_name)}/{segment(session_id)}/messages",
                {200: list[MessageRecord]},
                query={"offset": offset, "limit": limit},
                repeat=Repeat.SAFE,
            )
        )

    async def end(
        self, agent_name: str, session_id: str, *, ended_at: str | datetime | NotSent | None = NOT_SENT
    ) -> SessionRecord:
        """End a session, which takes no more messages then; one that has ended stays so.

        `POST /sessions/{agent_name}/{session_id}/end`.
        """
        return await self._transport.send(
            Call(
                "POST",
                f"/sessions/{segment(agent_name)}/{segment(session_id)}/end",
                {200: SessionRecord},
                body={"ended_at": ended_at},
            )
        )
