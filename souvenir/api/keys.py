"""API keys: create, list, update, rotate and revoke them. The key itself is only in the response that creates it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Path, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from souvenir.access.authenticator import ENV_KEY
from souvenir.access.keys import PRINCIPAL_PATTERN, KeyDraft, KeyPatch, NewKey
from souvenir.api.fields import Clean, SourcePath, wire_time
from souvenir.core.quotas import MAX_QUOTA, Quotas
from souvenir.core.types import Role
from souvenir.server.load_shedding import CostClass
from souvenir.server.request_guards import (
    MAX_NAMESPACE_CHARS,
    NOTHING,
    Admin,
    Reader,
    caller_of,
    namespace_name,
    service_of,
)
from souvenir.server.routing import Routes
from souvenir.store.admin.keys import ApiKey

routes = Routes("keys")

MAX_PREFIXES = 100

_Name = Annotated[str, StringConstraints(min_length=1, max_length=200), Clean]
_Principal = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=PRINCIPAL_PATTERN)]
_Namespace = Annotated[
    str, StringConstraints(min_length=1, max_length=MAX_NAMESPACE_CHARS), Clean, AfterValidator(namespace_name)
]
_Prefixes = Annotated[list[SourcePath], Field(max_length=MAX_PREFIXES)]
_KeyId = Annotated[
    str, Path(description="The id of a key.", max_length=200, examples=["0b6f3c52-5d0c-4c55-9a0e-3f6a3f0f6a51"])
]


_Limit = Annotated[int, Field(ge=0, le=MAX_QUOTA)]


class KeyQuotas(BaseModel):
    """Limits of a key; null: the default of the setting KEY_QUOTAS, or no limit."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"requests_per_minute": 600, "memories": 10000}]}
    )

    requests_per_minute: Annotated[int, Field(ge=0, le=100_000)] | None = Field(
        default=None, description="Requests in any 60 seconds."
    )
    memories: _Limit | None = Field(
        default=None, description="Memories created with the key that still exist, including archived ones."
    )
    stored_bytes: _Limit | None = Field(
        default=None,
        description="UTF-8 bytes of the texts and metadata of memories and messages created with the key that still "
        "exist, and of the history of its changes to memories.",
    )
    jobs_per_day: _Limit | None = Field(
        default=None, description="Jobs other than extractions submitted on one UTC day."
    )
    extractions_per_day: _Limit | None = Field(
        default=None, description="Extractions submitted on one UTC day, including their application and undoing."
    )

    def quotas(self) -> Quotas:
        return Quotas(**self.model_dump())

    @classmethod
    def of(cls, quotas: Quotas) -> KeyQuotas:
        return cls(**asdict(quotas))


class CreateKeyRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "claude-code", "role": "read-write", "prefixes": ["claude-code/*"]}]}
    )

    name: _Name = Field(description="A name for people to recognise the key.")
    role: Role = Field(description="`read-only`, `read-write` or `admin`.")
    prefixes: _Prefixes = Field(
        default=[], description="Source paths that the key can read and write: each path and everything below it."
    )
    namespace: _Namespace | None = Field(default=None, description="The namespace of the key; `default` if unset.")
    principal_id: _Principal | None = Field(
        default=None, description="The client that the key identifies; `name` by default, if that is a slug."
    )

    quotas: KeyQuotas = Field(default=KeyQuotas(), description="The limits of the key.")

    def draft(self) -> KeyDraft:
        prefixes = tuple(dict.fromkeys(self.prefixes))
        return KeyDraft(self.name, self.role, prefixes, self.namespace, self.principal_id, self.quotas.quotas())


class UpdateKeyRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"prefixes": ["claude-code", "team"]}]})

    name: _Name | None = Field(default=None, description="The new name.")
    role: Role | None = Field(default=None, description="A key that becomes admin loses its prefixes and namespace.")
    prefixes: _Prefixes | None = Field(default=None, description="The prefixes, replacing all present ones.")
    namespace: _Namespace | None = Field(default=None, description="The new namespace.")
    principal_id: _Principal | None = Field(default=None, description="The new client that the key identifies.")

    quotas: KeyQuotas | None = Field(default=None, description="The limits, replacing all present ones.")

    def patch(self) -> KeyPatch:
        prefixes = None if self.prefixes is None else tuple(dict.fromkeys(self.prefixes))
        quotas = None if self.quotas is None else self.quotas.quotas()
        return KeyPatch(self.name, self.role, prefixes, self.namespace, self.principal_id, quotas)


class NewKeyResponse(BaseModel):
    id: str = Field(examples=["0b6f3c52-5d0c-4c55-9a0e-3f6a3f0f6a51"])
    key: str = Field(description="The key itself. It is shown only once.")
    key_prefix: str = Field(examples=["mem_9f2c"])
    name: str = Field(examples=["claude-code"])
    principal_id: str | None = Field(examples=["claude-code"])
    role: Role
    namespace: str | None = Field(description="Null for an admin, who can access all namespaces.", examples=["default"])
    prefixes: list[str] = Field(examples=[["claude-code"]])
    quotas: KeyQuotas
    created_at: str

    @classmethod
    def of(cls, made: NewKey) -> NewKeyResponse:
        return cls(key=made.secret, **_fields(made.key))


class KeyRecord(BaseModel):
    id: str = Field(examples=["0b6f3c52-5d0c-4c55-9a0e-3f6a3f0f6a51"])
    name: str = Field(examples=["claude-code"])
    principal_id: str | None = Field(examples=["claude-code"])
    key_prefix: str = Field(description="The first characters of the key, which identify it.", examples=["mem_9f2c"])
    role: Role
    namespace: str | None = Field(examples=["default"])
    prefixes: list[str] = Field(examples=[["claude-code"]])
    quotas: KeyQuotas = Field(description="The limits set for the key itself; `GET /usage` includes the defaults.")
    created_at: str
    last_used_at: str | None
    usage_count: int = Field(description="The number of requests; updated once a minute.")
    revoked: int = Field(description="1 if the key is revoked, else 0.")

    @classmethod
    def of(cls, key: ApiKey) -> KeyRecord:
        last_used_at = None if key.last_used_at is None else wire_time(key.last_used_at)
        revoked = int(key.revoked_at is not None)
        return cls(last_used_at=last_used_at, usage_count=key.usage_count, revoked=revoked, **_fields(key))


class KeysResponse(BaseModel):
    keys: list[KeyRecord] = Field(description="Oldest first.")
    count: int


class UpdateKeyResponse(BaseModel):
    success: bool
    id: str = Field(examples=["0b6f3c52-5d0c-4c55-9a0e-3f6a3f0f6a51"])


class RevokeKeyResponse(BaseModel):
    id: str = Field(examples=["0b6f3c52-5d0c-4c55-9a0e-3f6a3f0f6a51"])
    revoked: bool


class OwnKeyResponse(BaseModel):
    """`type` and `role`; the other fields are set for a managed key."""

    type: str = Field(
        description="`none`: no key is required; `env`: the setting API_KEY; `managed`: a key created with the API.",
        examples=["managed"],
    )
    role: Role
    id: str | None = None
    name: str | None = None
    principal_id: str | None = None
    namespace: str | None = None
    prefixes: list[str] | None = None


@routes.get(
    "/api/keys/me",
    summary="Get the current key",
    cost=CostClass.LIGHT,
    access=NOTHING,
    sdk="keys.me",
)
def own_key(scope: Reader, request: Request) -> OwnKeyResponse:
    """Get the role and scope of the key that the request carries."""
    caller = caller_of(request)
    if caller.key is None:
        return OwnKeyResponse(type="env" if caller.actor == ENV_KEY else "none", role=caller.role)
    fields = _fields(caller.key)
    return OwnKeyResponse(
        type="managed", **{name: fields[name] for name in OwnKeyResponse.model_fields if name in fields}
    )


@routes.post("/api/keys", summary="Create a key", cost=CostClass.LIGHT, sdk="keys.create", errors=[400, 409])
def create_key(body: CreateKeyRequest, scope: Admin, request: Request) -> NewKeyResponse:
    """Create an API key; the first key must be an admin key, and from then on every request needs a key."""
    return NewKeyResponse.of(service_of(request).keys.create(body.draft(), by=scope))


@routes.get(
    "/api/keys",
    summary="List keys",
    cost=CostClass.LIGHT,
    sdk="keys.list",
)
def list_keys(scope: Admin, request: Request) -> KeysResponse:
    """List all keys, including revoked ones."""
    found = [KeyRecord.of(key) for key in service_of(request).keys.all()]
    return KeysResponse(keys=found, count=len(found))


@routes.patch(
    "/api/keys/{key_id}",
    summary="Update a key",
    cost=CostClass.LIGHT,
    sdk="keys.update",
    errors=[400, 404, 409],
)
def update_key(key_id: _KeyId, body: UpdateKeyRequest, scope: Admin, request: Request) -> UpdateKeyResponse:
    """Change the name or permissions of a key; effective immediately."""
    return UpdateKeyResponse(success=True, id=service_of(request).keys.update(key_id, body.patch(), by=scope).id)


@routes.post(
    "/api/keys/{key_id}/rotate",
    summary="Rotate a key",
    cost=CostClass.LIGHT,
    sdk="keys.rotate",
    errors=[404],
)
def rotate_key(key_id: _KeyId, scope: Admin, request: Request) -> NewKeyResponse:
    """Replace the secret of a key; the old secret stops working immediately."""
    return NewKeyResponse.of(service_of(request).keys.rotate(key_id, by=scope))


@routes.delete(
    "/api/keys/{key_id}",
    summary="Revoke a key",
    cost=CostClass.LIGHT,
    sdk="keys.revoke",
    errors=[404, 409],
)
def revoke_key(key_id: _KeyId, scope: Admin, request: Request) -> RevokeKeyResponse:
    """Revoke a key immediately and permanently."""
    service_of(request).keys.revoke(key_id, by=scope)
    return RevokeKeyResponse(id=key_id, revoked=True)


def _fields(key: ApiKey) -> dict[str, Any]:
    return {
        "id": key.id,
        "key_prefix": key.key_prefix,
        "name": key.name,
        "principal_id": key.principal_id,
        "role": key.role,
        "namespace": key.namespace,
        "prefixes": list(key.prefixes),
        "quotas": KeyQuotas.of(key.quotas),
        "created_at": wire_time(key.created_at),
    }
