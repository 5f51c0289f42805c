"""Managing API keys. A key itself is in one answer only: that which makes or replaces it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path, Request
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints

from souvenir.access.door import ENV_KEY
from souvenir.access.keys import PRINCIPAL_PATTERN, KeyDraft, KeyPatch, NewKey
from souvenir.api.caller import MAX_NAMESPACE_CHARS, Admin, Reader, caller_of, namespace_name, service_of
from souvenir.api.errors import error_responses
from souvenir.api.fields import Clean, SourcePath, wire_time
from souvenir.api.json_route import router
from souvenir.store.keys import ApiKey
from souvenir.types import Role

routes = router("keys")

MAX_PREFIXES = 100

_ID = "0b6f3c52-5d0c-4c55-9a0e-3f6a3f0f6a51"
_Name = Annotated[str, StringConstraints(min_length=1, max_length=200), Clean]
_Principal = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=PRINCIPAL_PATTERN)]
_Namespace = Annotated[
    str, StringConstraints(min_length=1, max_length=MAX_NAMESPACE_CHARS), Clean, AfterValidator(namespace_name)
]
_Prefixes = Annotated[list[SourcePath], Field(max_length=MAX_PREFIXES)]
_KeyId = Annotated[str, Path(description="The id of a key.", max_length=200)]

_KEY_EXAMPLE: dict[str, Any] = {
    "id": _ID,
    "name": "claude-code",
    "principal_id": "claude-code",
    "key_prefix": "mem_9f2c",
    "role": "read-write",
    "namespace": "default",
    "prefixes": ["claude-code"],
    "created_at": "2025-04-02T09:30:00.000000+00:00",
}


class CreateKeyRequest(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{"name": "claude-code", "role": "read-write", "prefixes": ["claude-code/*"]}]}
    )

    name: _Name = Field(description="What people call it.")
    role: Role = Field(description="`read-only`, `read-write` or `admin`.")
    prefixes: _Prefixes = Field(
        default=[], description="Source paths that it may see and write: each itself and what lies below it."
    )
    namespace: _Namespace | None = Field(default=None, description="The one that it may name; `default` without it.")
    principal_id: _Principal | None = Field(
        default=None, description="Who it stands for; `name` without it, if that is a slug."
    )

    def draft(self) -> KeyDraft:
        return KeyDraft(self.name, self.role, tuple(dict.fromkeys(self.prefixes)), self.namespace, self.principal_id)


class UpdateKeyRequest(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"prefixes": ["claude-code", "team"]}]})

    name: _Name | None = Field(default=None, description="The new name.")
    role: Role | None = Field(default=None, description="A key that becomes admin loses its prefixes and namespace.")
    prefixes: _Prefixes | None = Field(default=None, description="All of the new prefixes.")
    namespace: _Namespace | None = Field(default=None, description="The new namespace.")
    principal_id: _Principal | None = Field(default=None, description="Who it stands for now.")

    def patch(self) -> KeyPatch:
        prefixes = None if self.prefixes is None else tuple(dict.fromkeys(self.prefixes))
        return KeyPatch(self.name, self.role, prefixes, self.namespace, self.principal_id)


class NewKeyResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{**_KEY_EXAMPLE, "key": "mem_9f2c7a1e4b8d4f0a9c3e5d7b1f2a6c48"}]}
    )

    id: str
    key: str = Field(description="The key itself. It is shown this once.")
    key_prefix: str
    name: str
    principal_id: str | None
    role: Role
    namespace: str | None = Field(description="Null for an admin, who may name any.")
    prefixes: list[str]
    created_at: str

    @classmethod
    def of(cls, made: NewKey) -> NewKeyResponse:
        return cls(key=made.secret, **_fields(made.key))


class KeyRecord(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={"examples": [{**_KEY_EXAMPLE, "last_used_at": None, "usage_count": 0, "revoked": 0}]}
    )

    id: str
    name: str
    principal_id: str | None
    key_prefix: str = Field(description="The first characters of the key, to tell it from others.")
    role: Role
    namespace: str | None
    prefixes: list[str]
    created_at: str
    last_used_at: str | None
    usage_count: int = Field(description="Requests; written down once a minute.")
    revoked: int = Field(description="1 if it was revoked, else 0.")

    @classmethod
    def of(cls, key: ApiKey) -> KeyRecord:
        last_used_at = None if key.last_used_at is None else wire_time(key.last_used_at)
        revoked = int(key.revoked_at is not None)
        return cls(last_used_at=last_used_at, usage_count=key.usage_count, revoked=revoked, **_fields(key))


class KeysResponse(BaseModel):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"keys": [{**_KEY_EXAMPLE, "last_used_at": None, "usage_count": 0, "revoked": 0}], "count": 1}]
        }
    )

    keys: list[KeyRecord] = Field(description="Oldest first.")
    count: int


class UpdateKeyResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"success": True, "id": _ID}]})

    success: bool
    id: str


class RevokeKeyResponse(BaseModel):
    model_config = ConfigDict(json_schema_extra={"examples": [{"id": _ID, "revoked": True}]})

    id: str
    revoked: bool


class OwnKeyResponse(BaseModel):
    """`type` and `role`, and of a managed key the rest."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "type": "managed",
                    "role": "read-write",
                    "id": _ID,
                    "name": "claude-code",
                    "principal_id": "claude-code",
                    "namespace": "default",
                    "prefixes": ["claude-code"],
                }
            ]
        }
    )

    type: str = Field(description="`none`: no key is needed; `env`: the setting API_KEY; `managed`: one made here.")
    role: Role
    id: str | None = None
    name: str | None = None
    principal_id: str | None = None
    namespace: str | None = None
    prefixes: list[str] | None = None


@routes.get("/api/keys/me", summary="Ask what the own key may do", responses=error_responses())
def own_key(scope: Reader, request: Request) -> OwnKeyResponse:
    """Get the role and the reach of the key that the request carries."""
    caller = caller_of(request)
    if caller.key is None:
        return OwnKeyResponse(type="env" if caller.actor == ENV_KEY else "none", role=caller.role)
    fields = _fields(caller.key)
    return OwnKeyResponse(
        type="managed", **{name: fields[name] for name in OwnKeyResponse.model_fields if name in fields}
    )


@routes.post("/api/keys", summary="Make a key", responses=error_responses(400, 409))
def create_key(body: CreateKeyRequest, scope: Admin, request: Request) -> NewKeyResponse:
    """Make a key, of which the first must be an admin's: from then on no request is answered without one."""
    return NewKeyResponse.of(service_of(request).keys.create(body.draft(), by=scope))


@routes.get("/api/keys", summary="List keys", responses=error_responses())
def list_keys(scope: Admin, request: Request) -> KeysResponse:
    """List all keys, revoked ones included."""
    found = [KeyRecord.of(key) for key in service_of(request).keys.all()]
    return KeysResponse(keys=found, count=len(found))


@routes.patch("/api/keys/{key_id}", summary="Change a key", responses=error_responses(400, 404, 409))
def update_key(key_id: _KeyId, body: UpdateKeyRequest, scope: Admin, request: Request) -> UpdateKeyResponse:
    """Change what a key may do, from the next request on."""
    return UpdateKeyResponse(success=True, id=service_of(request).keys.update(key_id, body.patch(), by=scope).id)


@routes.post("/api/keys/{key_id}/rotate", summary="Replace a key's secret", responses=error_responses(404))
def rotate_key(key_id: _KeyId, scope: Admin, request: Request) -> NewKeyResponse:
    """Get a new secret for the same key; the old one stops at once."""
    return NewKeyResponse.of(service_of(request).keys.rotate(key_id, by=scope))


@routes.delete("/api/keys/{key_id}", summary="Revoke a key", responses=error_responses(404, 409))
def revoke_key(key_id: _KeyId, scope: Admin, request: Request) -> RevokeKeyResponse:
    """Let a key stop at once and for good."""
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
        "created_at": wire_time(key.created_at),
    }
