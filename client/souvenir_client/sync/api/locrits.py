"""Operations of the section `locrits`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

from souvenir_client.calls import NOT_SENT, Call, NotSent, Repeat, segment
from souvenir_client.records.enums import SearchStrategy
from souvenir_client.records.locrits import (
    ConversationStored,
    LocritAiSearchResponse,
    LocritConceptDetails,
    LocritConcepts,
    LocritDone,
    LocritHistory,
    LocritMemories,
    LocritMemoryAdded,
    LocritMessageAnswer,
    LocritRelatedConcepts,
    LocritSearchResponse,
    LocritSessionAnswer,
    LocritSessions,
    LocritStats,
    LocritSummary,
)
from souvenir_client.sync.transport import Transport


class Locrits:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def search(
        self,
        agent_name: str,
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

        `GET /api/locrits/{agent_name}/memory/search`.
        """
        return self._transport.send(
            Call(
                "GET",
                f"/api/locrits/{segment(agent_name)}/memory/search",
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
        self, agent_name: str, *, q: str, limit: int | NotSent = NOT_SENT, strategy: SearchStrategy | NotSent = NOT_SENT
    ) -> LocritAiSearchResponse:
        """Find the same, in the words of the first version of that wire.

        `GET /api/v1/locrits/{agent_name}/memory/ai-search`.
        """
        return self._transport.send(
            Call(
                "GET",
                f"/api/v1/locrits/{segment(agent_name)}/memory/ai-search",
                {200: LocritAiSearchResponse},
                query={"q": q, "limit": limit, "strategy": strategy},
                repeat=Repeat.SAFE,
            )
        )

    def summary(self, agent_name: str) -> LocritSummary:
        """Say how much a Locrit has, what was said last, and which concepts tell most of it.

        `GET /api/locrits/{agent_name}/memory/summary`.
        """
        return self._transport.send(
            Call("GET", f"/api/locrits/{segment(agent_name)}/memory/summary", {200: LocritSummary}, repeat=Repeat.SAFE)
        )

    def stats(self, agent_name: str) -> LocritStats:
        """Say how much a Locrit has. `GET /api/locrits/{agent_name}/memory/stats`."""
        return self._transport.send(
            Call("GET", f"/api/locrits/{segment(agent_name)}/memory/stats", {200: LocritStats}, repeat=Repeat.SAFE)
        )

    def sessions(
        self, agent_name: str, *, offset: int | NotSent = NOT_SENT, limit: int | NotSent = NOT_SENT
    ) -> LocritSessions:
        """List a Locrit's sessions, newest first. `GET /api/locrits/{agent_name}/memory/sessions`."""
        return self._transport.send(
            Call(
                "GET",
                f"/api/locrits/{segment(agent_name)}/memory/sessions",
                {200: LocritSessions},
                query={"offset": offset, "limit": limit},
                repeat=Repeat.SAFE,
            )
        )

    def session(self, agent_name: str, session_id: str) -> LocritSessionAnswer:
        """Get a session by its id. `GET /api/locrits/{agent_name}/memory/sessions/{session_id}`."""
        return self._transport.send(
            Call(
                "GET",
                f"/api/locrits/{segment(agent_name)}/memory/sessions/{segment(session_id)}",
                {200: LocritSessionAnswer},
                repeat=Repeat.SAFE,
            )
        )

    def delete_session(self, agent_name: str, session_id: str) -> LocritDone:
        """Forget a session with every message of it, and what was learned in it.

        `DELETE /api/locrits/{agent_name}/memory/sessions/{session_id}`.
        """
        return self._transport.send(
            Call(
                "DELETE", f"/api/locrits/{segment(agent_name)}/memory/sessions/{segment(session_id)}", {200: LocritDone}
            )
        )

    def history(self, agent_name: str, session_id: str, *, limit: int | NotSent = NOT_SENT) -> LocritHistory:
        """List the latest messages of a session in the order in which they came.

        `GET /api/locrits/{agent_name}/memory/sessions/{session_id}/messages`.
        """
        return self._transport.send(
            Call(
                "GET",
                f"/api/locrits/{segment(agent_name)}/memory/sessions/{segment(session_id)}/messages",
                {200: LocritHistory},
                query={"limit": limit},
                repeat=Repeat.SAFE,
            )
        )

    def message(self, agent_name: str, message_id: str) -> LocritMessageAnswer:
        """Get a message by its id. `GET /api/locrits/{agent_name}/memory/messages/{message_id}`."""
        return self._transport.send(
            Call(
                "GET",
                f"/api/locrits/{segment(agent_name)}/memory/messages/{segment(message_id)}",
                {200: LocritMessageAnswer},
                repeat=Repeat.SAFE,
            )
        )

    def edit_message(self, agent_name: str, message_id: str, *, content: str) -> LocritDone:
        """Replace what a message says; from then on it is found, and its concepts are read, by that only.

        `PUT /api/locrits/{agent_name}/memory/messages/{message_id}`.
        """
        return self._transport.send(
            Call(
                "PUT",
                f"/api/locrits/{segment(agent_name)}/memory/messages/{segment(message_id)}",
                {200: LocritDone},
                body={"content": content},
                repeat=Repeat.SAFE,
            )
        )

    def delete_message(self, agent_name: str, message_id: str) -> LocritDone:
        """Forget a message. `DELETE /api/locrits/{agent_name}/memory/messages/{message_id}`."""
        return self._transport.send(
            Call(
                "DELETE", f"/api/locrits/{segment(agent_name)}/memory/messages/{segment(message_id)}", {200: LocritDone}
            )
        )

    def concepts(
        self, agent_name: str, *, offset: int | NotSent = NOT_SENT, limit: int | NotSent = NOT_SENT
    ) -> LocritConcepts:
        """List what a Locrit's messages and memories mention, those first that tell most of it.

        `GET /api/locrits/{agent_name}/memory/concepts`.
        """
        return self._transport.send(
            Call(
                "GET",
                f"/api/locrits/{segment(agent_name)}/memory/concepts",
                {200: LocritConcepts},
                query={"offset": offset, "limit": limit},
                repeat=Repeat.SAFE,
            )
        )

    def concept(self, agent_name: str, *, name: str) -> LocritConceptDetails:
        """Get the concept that is called so, however the name is written, with where it is mentioned.

        `GET /api/locrits/{agent_name}/memory/concepts/details`.
        """
        return self._transport.send(
            Call(
                "GET",
                f"/api/locrits/{segment(agent_name)}/memory/concepts/details",
                {200: LocritConceptDetails},
                query={"name": name},
                repeat=Repeat.SAFE,
            )
        )

    def related(self, agent_name: str, concept_name: str, *, depth: int | NotSent = NOT_SENT) -> LocritRelatedConcepts:
        """List the concepts to which the strongest paths lead from the one that is called so.

        `GET /api/locrits/{agent_name}/memory/concepts/{concept_name}/related`.
        """
        return self._transport.send(
            Call(
                "GET",
                f"/api/locrits/{segment(agent_name)}/memory/concepts/{segment(concept_name)}/related",
                {200: LocritRelatedConcepts},
                query={"depth": depth},
                repeat=Repeat.SAFE,
            )
        )

    def memories(
        self, agent_name: str, *, offset: int | NotSent = NOT_SENT, limit: int | NotSent = NOT_SENT
    ) -> LocritMemories:
        """List what a Locrit remembers beside what was said, newest first.

        `GET /api/locrits/{agent_name}/memory/memories`.
        """
        return self._transport.send(
            Call(
                "GET",
                f"/api/locrits/{segment(agent_name)}/memory/memories",
                {200: LocritMemories},
                query={"offset": offset, "limit": limit},
                repeat=Repeat.SAFE,
            )
        )

    def add_memory(
        self,
        agent_name: str,
        *,
        content: str,
        idempotency_key: str | NotSent = NOT_SENT,
        importance: float | NotSent = NOT_SENT,
        metadata: Mapping[str, Any] | NotSent | None = NOT_SENT,
    ) -> LocritMemoryAdded:
        """Remember a text beside what was said; its Locrit is made if it is new.

        `POST /api/locrits/{agent_name}/memory/memories`.
        """
        return self._transport.send(
            Call(
                "POST",
                f"/api/locrits/{segment(agent_name)}/memory/memories",
                {200: LocritMemoryAdded},
                headers={"Idempotency-Key": idempotency_key},
                body={"content": content, "importance": importance, "metadata": metadata},
                repeat=Repeat.KEYED,
            )
        )

    def store(
        self,
        agent_name: str,
        *,
        messages: Sequence[Mapping[str, Any]],
        user_id: str | NotSent | None = NOT_SENT,
        session_id: str | NotSent | None = NOT_SENT,
    ) -> ConversationStored:
        """Store the messages of a conversation that are new, and make its Locrit, user and session.

        `POST /api/v1/locrits/{agent_name}/memory/store-conversation`.
        """
        return self._transport.send(
            Call(
                "POST",
                f"/api/v1/locrits/{segment(agent_name)}/memory/store-conversation",
                {200: ConversationStored},
                body={"messages": messages, "user_id": user_id, "session_id": session_id},
            )
        )

    def edit_concept(
        self,
        agent_name: str,
        concept_id: int,
        *,
        name: str | NotSent | None = NOT_SENT,
        description: str | NotSent | None = NOT_SENT,
        confidence: float | NotSent | None = NOT_SENT,
    ) -> LocritDone:
        """Say what a concept is called and what it is, in the place of what callers said before.

        `PUT /api/locrits/{agent_name}/memory/concepts/{concept_id}`.
        """
        return self._transport.send(
            Call(
                "PUT",
                f"/api/locrits/{segment(agent_name)}/memory/concepts/{segment(concept_id)}",
                {200: LocritDone},
                body={"name": name, "description": description, "confidence": confidence},
                repeat=Repeat.SAFE,
            )
        )

    def delete_concept(self, agent_name: str, concept_id: int) -> LocritDone:
        """Forget a concept under all of its names; texts that mention it stay, and it is not read in them again.

        `DELETE /api/locrits/{agent_name}/memory/concepts/{concept_id}`.
        """
        return self._transport.send(
            Call(
                "DELETE", f"/api/locrits/{segment(agent_name)}/memory/concepts/{segment(concept_id)}", {200: LocritDone}
            )
        )

    def delete_memory(self, agent_name: str, memory_id: int) -> LocritDone:
        """Forget a memory for good, unless it is pinned.

        `DELETE /api/locrits/{agent_name}/memory/memories/{memory_id}`.
        """
        return self._transport.send(
            Call(
                "DELETE", f"/api/locrits/{segment(agent_name)}/memory/memories/{segment(memory_id)}", {200: LocritDone}
            )
        )

    def clear(self, agent_name: str, *, confirm: Literal[True]) -> LocritDone:
        """Forget everything of a Locrit, which stays with its settings; a backup is made first.

        `DELETE /api/locrits/{agent_name}/memory/clear`.
        """
        return self._transport.send(
            Call(
                "DELETE",
                f"/api/locrits/{segment(agent_name)}/memory/clear",
                {200: LocritDone},
                body={"confirm": confirm},
            )
        )
