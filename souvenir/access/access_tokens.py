"""Access tokens of an authorization server (OAuth 2.1), for hosted MCP clients that cannot send a key.

A token says who calls, not what they may do: it acts as the key whose name is `oauth:` and its subject, with that
key's role, namespace, quotas and audit, until the key is revoked. Tokens are JWTs (RFC 9068), checked by issuer,
audience, times and signature with the public keys that the server publishes (RFC 8414, RFC 7517). None is stored.
Imported only where OAUTH_ISSUER is set.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping
from typing import Any

import httpx2
import jwt
import structlog
from jwt import PyJWK, PyJWKSet

from souvenir.access.keys import ApiKeys
from souvenir.core.errors import AuthorizationServerUnavailable, Forbidden, Unauthorized
from souvenir.core.network_settings import NetworkSettings
from souvenir.store.admin.keys import ApiKey

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures with a public key; one made with a shared secret proves nothing to a third party."""

METADATA_PATHS = ("oauth-authorization-server", "openid-configuration")
NAMED = "oauth:"
"""The name of a key for tokens begins so, so that no subject is taken for the name of another key."""

LEEWAY_S = 30.0
KEYS_KEPT_S = 3600.0
MIN_FETCH_INTERVAL_S = 30
"""Shortest time between two requests for the keys, however many tokens name an unknown one."""

FETCH_TIMEOUT_S = 5.0

log = structlog.get_logger(__name__)


class AccessTokens:
    """The tokens of OAUTH_ISSUER. For one event loop.

    :param metadata_path: The path below which the metadata of a resource are, followed by the resource's own path.
    """

    def __init__(self, settings: NetworkSettings, keys: ApiKeys, metadata_path: str) -> None:
        self._settings = settings
        self._metadata_path = metadata_path
        self._keys = keys
        self._public: Mapping[str, PyJWK] = {}
        self._fetched_at: float | None = None
        self._asked_at = -math.inf
        self._fetching = asyncio.Lock()

    @staticmethod
    def is_token(sent: bytes) -> bool:
        """True if it has the form of a signed JWT, which no key has."""
        return sent.count(b".") == 2

    def resource(self, path: str) -> str:
        """The URL of a path of the service, as tokens name it."""
        return f"{self._settings.public_address}{path}"

    def metadata(self, path: str) -> dict[str, Any]:
        """The metadata of a protected resource (RFC 9728)."""
        return {
            "resource": self.resource(path),
            "authorization_servers": [self._settings.oauth_issuer],
            "bearer_methods_supported": ["header"],
            "resource_name": "Souvenir",
        }

    def challenge(self, path: str) -> str:
        """The value of WWW-Authenticate that leads a client to the metadata of a path."""
        return f'Bearer resource_metadata="{self.resource(self._metadata_path + path)}"'

    async def subject(self, sent: bytes, path: str) -> str:
        """Return the subject of a token.

        :param path: The path of the request, for which the token has to be made unless OAUTH_AUDIENCE names another.
        :raises Unauthorized: If the token is invalid.
        :raises AuthorizationServerUnavailable: If the keys of the authorization server cannot be read.
        """
        try:
            token = sent.decode("ascii")
            key_id = jwt.get_unverified_header(token).get("kid", "")
            public = await self._key(str(key_id))
            claims = jwt.decode(
                token,
                public,
                algorithms=ALGORITHMS,
                issuer=self._settings.oauth_issuer,
                audience=self._settings.oauth_audience or self.resource(path),
                leeway=LEEWAY_S,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except (UnicodeDecodeError, jwt.PyJWTError) as error:
            raise Unauthorized(f"The access token is not valid here ({error})") from error
        return str(claims["sub"])

    def key_of(self, subject: str) -> ApiKey:
        """Return the key that belongs to a subject now.

        :raises Forbidden: If not exactly one key has its name.
        """
        name = f"{NAMED}{subject}"
        named = self._keys.named(name)
        if len(named) != 1:
            raise Forbidden(
                f"{len(named) or 'No'} keys are named {name!r}; an administrator creates exactly one for this user"
            )
        return named[0]

    async def _key(self, key_id: str) -> PyJWK:
        """:raises jwt.InvalidKeyError: If the server has no such key.

        :raises AuthorizationServerUnavailable: If its keys were never read.
        """
        async with self._fetching:
            now = time.monotonic()
            known = self._fetched_at is not None and now - self._fetched_at < KEYS_KEPT_S
            if (not known or key_id not in self._public) and now - self._asked_at >= MIN_FETCH_INTERVAL_S:
                self._asked_at = now
                await self._fetch()
        if self._fetched_at is None:
            raise AuthorizationServerUnavailable(retry_after_s=MIN_FETCH_INTERVAL_S)
        if key_id not in self._public:
            raise jwt.InvalidKeyError("it is signed with no key of the authorization server")
        return self._public[key_id]

    async def _fetch(self) -> None:
        """Read the public keys; those that were read before are kept if that fails."""
        try:
            async with httpx2.AsyncClient(timeout=FETCH_TIMEOUT_S, trust_env=False) as client:
                url = self._settings.oauth_jwks_url or await self._published(client)
                answer = await client.get(url)
                answer.raise_for_status()
                self._public = {key.key_id or "": key for key in PyJWKSet.from_dict(answer.json()).keys}
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, KeyError, jwt.PyJWTError) as error:
            log.warning("oauth_keys_unreadable", issuer=self._settings.oauth_issuer, error=str(error))
            return
        self._fetched_at = time.monotonic()

    async def _published(self, client: httpx2.AsyncClient) -> str:
        """Return the address of the keys from the server's metadata.

        :raises KeyError: If it has none.
        """
        issuer = httpx2.URL(self._settings.oauth_issuer or "")
        path = issuer.path.rstrip("/")
        for name, place in zip(METADATA_PATHS, (f"/.well-known/{{}}{path}", f"{path}/.well-known/{{}}"), strict=True):
            answer = await client.get(issuer.copy_with(path=place.format(name)))
            if answer.is_success and answer.json().get("issuer") == self._settings.oauth_issuer:
                return str(answer.json()["jwks_uri"])
        raise KeyError("jwks_uri")
