"""Operations of the section `keys`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Sequence

from souvenir_client.calls import NOT_SENT, Call, NotSent, Repeat, segment
from souvenir_client.records.enums import Role
from souvenir_client.records.keys import (
    KeysResponse,
    NewKeyResponse,
    OwnKeyResponse,
    RevokeKeyResponse,
    UpdateKeyResponse,
)
from souvenir_client.sync.transport import Transport


class Keys:
    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    def me(self) -> OwnKeyResponse:
        """Get the role and the reach of the key that the request carries. `GET /api/keys/me`."""
        return self._transport.send(Call("GET", "/api/keys/me", {200: OwnKeyResponse}, repeat=Repeat.SAFE))

    def create(
        self,
        *,
        name: str,
        role: Role,
        prefixes: Sequence[str] | NotSent = NOT_SENT,
        namespace: str | NotSent | None = NOT_SENT,
        principal_id: str | NotSent | None = NOT_SENT,
    ) -> NewKeyResponse:
        """Make a key, of which the first must be an admin's: from then on no request is answered without one.

        `POST /api/keys`.
        """
        return self._transport.send(
            Call(
                "POST",
                "/api/keys",
                {200: NewKeyResponse},
                body={
                    "name": name,
                    "role": role,
                    "prefixes": prefixes,
                    "namespace": namespace,
                    "principal_id": principal_id,
                },
            )
        )

    def list(self) -> KeysResponse:
        """List all keys, revoked ones included. `GET /api/keys`."""
        return self._transport.send(Call("GET", "/api/keys", {200: KeysResponse}, repeat=Repeat.SAFE))

    def update(
        self,
        key_id: str,
        *,
        name: str | NotSent | None = NOT_SENT,
        role: Role | NotSent | None = NOT_SENT,
        prefixes: Sequence[str] | NotSent | None = NOT_SENT,
        namespace: str | NotSent | None = NOT_SENT,
        principal_id: str | NotSent | None = NOT_SENT,
    ) -> UpdateKeyResponse:
        """Change what a key may do, from the next request on. `PATCH /api/keys/{key_id}`."""
        return self._transport.send(
            Call(
                "PATCH",
                f"/api/keys/{segment(key_id)}",
                {200: UpdateKeyResponse},
                body={
                    "name": name,
                    "role": role,
                    "prefixes": prefixes,
                    "namespace": namespace,
                    "principal_id": principal_id,
                },
            )
        )

    def revoke(self, key_id: str) -> RevokeKeyResponse:
        """Let a key stop at once and for good. `DELETE /api/keys/{key_id}`."""
        return self._transport.send(Call("DELETE", f"/api/keys/{segment(key_id)}", {200: RevokeKeyResponse}))

    def rotate(self, key_id: str) -> NewKeyResponse:
        """Get a new secret for the same key; the old one stops at once. `POST /api/keys/{key_id}/rotate`."""
        return self._transport.send(Call("POST", f"/api/keys/{segment(key_id)}/rotate", {200: NewKeyResponse}))
