"""Operations of the section `tiers`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from souvenir_client.calls import NOT_SENT, Call, NotSent, Repeat, segment
from souvenir_client.records.common import MessageRecord
from souvenir_client.records.enums import MessageRole
from souvenir_client.records.tiers import (
    ClearedResponse,
    ForgetResponse,
    PreferencePage,
    PreferenceRecord,
    RecallResponse,
    RecallSearchResponse,
    RememberResponse,
    SessionContextResponse,
    WindowResponse,
)
from souvenir_client.sync.transport import Transport


class SessionsOfTiers:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def append(
        self,
        agent_name: str,
        session_id: str,
        *,
        role: MessageRole,
        content: str,
        idempotency_key: str | NotSent = NOT_SENT,
        metadata: Mapping[str, Any] | NotSent | None = NOT_SENT,
        user: str | NotSent | None = NOT_SENT,
        name: str | NotSent | None = NOT_SENT,
        created_at: str | datetime | NotSent | None = NOT_SENT,
    ) -> MessageRecord:
        """Store a message in one commit and without the model; searches find it when the session has ended.

        `POST /sessions/{agent_name}/{session_id}/messages`.
        """
        return self._transport.send(
            Call(
                "POST",
                f"/sessions/{segment(agent_name)}/{segment(session_id)}/messages",
                {200: MessageRecord},
                headers={"Idempotency-Key": idempotency_key},
                body={
                    "role": role,
                    "content": content,
                    "metadata": metadata,
                    "user": user,
                    "name": name,
                    "created_at": created_at,
                },
                repeat=Repeat.KEYED,
            )
        )

    def window(
        self,
        agent_name: str,
        session_id: str,
        *,
        token_limit: int | NotSent = NOT_SENT,
        limit: int | NotSent | None = NOT_SENT,
    ) -> WindowResponse:
        """Get the newest messages since the context began, at most SESSION_MAX_MESSAGES of them.

        `GET /sessions/{agent_name}/{session_id}/window`.
        """
        return self._transport.send(
            Call(
                "GET",
                f"/sessions/{segment(agent_name)}/{segment(session_id)}/window",
                {200: WindowResponse},
                query={"token_limit": token_limit, "limit": limit},
                repeat=Repeat.SAFE,
            )
        )

    def clear_window(self, agent_name: str, session_id: str) -> ClearedResponse:
        """Let the context begin with the next message; what was said stays in the session.

        `DELETE /sessions/{agent_name}/{session_id}/window`.
        """
        return self._transport.send(
            Call("DELETE", f"/sessions/{segment(agent_name)}/{segment(session_id)}/window", {200: ClearedResponse})
        )

    def context(self, agent_name: str, session_id: str, *, query: str) -> SessionContextResponse:
        """Collect what a prompt takes: the running session, past messages and memories that fit, and all preferences.

        `POST /sessions/{agent_name}/{session_id}/context`.
        """
        return self._transport.send(
            Call(
                "POST",
                f"/sessions/{segment(agent_name)}/{segment(session_id)}/context",
                {200: SessionContextResponse},
                body={"query": query},
                repeat=Repeat.SAFE,
            )
        )


class LongTermOfTiers:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def remember(
        self,
        *,
        agent_name: str,
        key: str,
        value: str,
        idempotency_key: str | NotSent = NOT_SENT,
        category: str | NotSent = NOT_SENT,
    ) -> RememberResponse:
        """Store a value under a key, in the place of the one that the key had in its category. `POST /remember`."""
        return self._transport.send(
            Call(
                "POST",
                "/remember",
                {200: RememberResponse},
                headers={"Idempotency-Key": idempotency_key},
                body={"agent_name": agent_name, "key": key, "value": value, "category": category},
                repeat=Repeat.KEYED,
            )
        )

    def forget(self, *, agent_name: str, key: str, category: str | NotSent = NOT_SENT) -> ForgetResponse:
        """Forget for good what a key means in its category, and what it meant before. `POST /forget`."""
        return self._transport.send(
            Call(
                "POST",
                "/forget",
                {200: ForgetResponse},
                body={"agent_name": agent_name, "key": key, "category": category},
            )
        )

    def recall(
        self, *, agent_name: str, query: str, category: str | NotSent | None = NOT_SENT, limit: int | NotSent = NOT_SENT
    ) -> RecallResponse:
        """Find what is remembered that answers a query best, as texts. `POST /recall`."""
        return self._transport.send(
            Call(
                "POST",
                "/recall",
                {200: RecallResponse},
                body={"agent_name": agent_name, "query": query, "category": category, "limit": limit},
                repeat=Repeat.SAFE,
            )
        )

    def search(
        self, *, agent_name: str, query: str, category: str | NotSent | None = NOT_SENT, limit: int | NotSent = NOT_SENT
    ) -> RecallSearchResponse:
        """Find the same as `/recall`, with keys, categories and scores. `POST /recall/search`."""
        return self._transport.send(
            Call(
                "POST",
                "/recall/search",
                {200: RecallSearchResponse},
                body={"agent_name": agent_name, "query": query, "category": category, "limit": limit},
                repeat=Repeat.SAFE,
            )
        )


class PreferencesOfTiers:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def list(
        self, agent_name: str, *, offset: int | NotSent = NOT_SENT, limit: int | NotSent = NOT_SENT
    ) -> PreferencePage:
        """List the preferences of an agent's user. `GET /preferences/{agent_name}`."""
        return self._transport.send(
            Call(
                "GET",
                f"/preferences/{segment(agent_name)}",
                {200: PreferencePage},
                query={"offset": offset, "limit": limit},
                repeat=Repeat.SAFE,
            )
        )

    def get(self, agent_name: str, key: str) -> PreferenceRecord:
        """Get one preference by its key. `GET /preferences/{agent_name}/{key}`."""
        return self._transport.send(
            Call(
                "GET", f"/preferences/{segment(agent_name)}/{segment(key)}", {200: PreferenceRecord}, repeat=Repeat.SAFE
            )
        )

    def set(self, agent_name: str, key: str, *, value: str) -> PreferenceRecord:
        """Set a preference, whether there is one of that key or not. `PUT /preferences/{agent_name}/{key}`."""
        return self._transport.send(
            Call(
                "PUT",
                f"/preferences/{segment(agent_name)}/{segment(key)}",
                {200: PreferenceRecord},
                body={"value": value},
                repeat=Repeat.SAFE,
            )
        )

    def forget(self, agent_name: str, key: str) -> ForgetResponse:
        """Forget a preference for good. `DELETE /preferences/{agent_name}/{key}`."""
        return self._transport.send(
            Call("DELETE", f"/preferences/{segment(agent_name)}/{segment(key)}", {200: ForgetResponse})
        )
