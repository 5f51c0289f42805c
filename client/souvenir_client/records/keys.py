"""What the service answers in its section `keys`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from dataclasses import dataclass

from souvenir_client.records.enums import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    id: str
    name: str
    principal_id: str | None
    key_prefix: str
    role: Role
    namespace: str | None
    prefixes: list[str]
    created_at: str
    last_used_at: str | None
    usage_count: int
    revoked: int


@dataclass(frozen=True, slots=True, kw_only=True)
class KeysResponse:
    keys: list[KeyRecord]
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKeyResponse:
    id: str
    key: str
    key_prefix: str
    name: str
    principal_id: str | None
    role: Role
    namespace: str | None
    prefixes: list[str]
    created_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnKeyResponse:
    """`type` and `role`, and of a managed key the rest."""

    type: str
    role: Role
    id: str | None = None
    name: str | None = None
    principal_id: str | None = None
    namespace: str | None = None
    prefixes: list[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeKeyResponse:
    id: str
    revoked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateKeyResponse:
    success: bool
    id: str
