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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import httpx2
import jwt
import structlog
from jwt import PyJWK

from souvenir.access.keys import ApiKeys
from souvenir.core.errors import AuthorizationServerUnavailable, Forbidden, Unauthorized
from souvenir.core.network_settings import NetworkSettings
from souvenir.store.admin.keys import ApiKey

OF_RSA = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
ALGORITHMS = (*OF_RSA, "ES256", "ES384", "ES512", "EdDSA")
"""Signatures with a public key; one made with a shared secret proves nothing to a third party."""

METADATA_PATHS = ("oauth-authorization-server", "openid-configuration")
NAMED = "oauth:"
"""The name of a key for tokens begins so, so that no subject is taken for the name of another key."""

LEEWAY_S = 30.0
KEYS_KEPT_S = 3600.0
"""Age from which the keys are read again."""

KEYS_USED_S = 86_400.0
"""Age from which the keys are not used any more if they cannot be read again: one may have been withdrawn since."""

MIN_FETCH_INTERVAL_S = 30
"""Shortest time between two requests for the keys, however many tokens name an unknown one."""

FETCH_TIMEOUT_S = 5.0

OF_PATHS = "/:@!$&'()*+,;="
"""Characters that a path holds as they are (RFC 3986, 3.3), besides letters, digits and `-._~`."""

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key of the authorization server, and the algorithms of the signatures that it checks."""

    key: PyJWK
    algorithms: Sequence[str]


class AccessTokens:
    """The tokens of OAUTH_ISSUER. For one event loop.

    :param metadata_path: The path below which the metadata of a resource are, followed by the resource's own path.
    """

    def __init__(self, settings: NetworkSettings, keys: ApiKeys, metadata_path: str) -> None:
        self._settings = settings
        self._metadata_path = metadata_path
        self._keys = keys
        self._public: Mapping[str, PublicKey] = {}
        self._fetched_at = -math.inf
        self._asked_at = -math.inf
        self._fetching = asyncio.Lock()

    @staticmethod
    def is_token(sent: bytes) -> bool:
        """True if it has the form of a signed JWT; of the keys, only API_KEY can have it."""
        return sent.count(b".") == 2

    def resource(self, path: str) -> str:
        """The URL of a path of the service, as tokens name it.

        :param path: Without percent-encoding.
        """
        return f"{self._settings.public_address}{quote(path, safe=OF_PATHS)}"

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
                public.key.key,
                algorithms=public.algorithms,
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

    async def _key(self, key_id: str) -> PublicKey:
        """Return a key; one that is known is not waited for while others are looked up.

        :raises jwt.InvalidKeyError: If the server has no such key.
        :raises AuthorizationServerUnavailable: If its keys were not read for too long.
        """
        if key_id not in self._public or self._age() >= (KEYS_USED_S if self._fetching.locked() else KEYS_KEPT_S):
            async with self._fetching:
                is_known = key_id in self._public and self._age() < KEYS_KEPT_S
                if not is_known and time.monotonic() - self._asked_at >= MIN_FETCH_INTERVAL_S:
                    self._asked_at = time.monotonic()
                    await self._fetch()
        if self._age() >= KEYS_USED_S:
            raise AuthorizationServerUnavailable(retry_after_s=MIN_FETCH_INTERVAL_S)
        if key_id not in self._public:
            raise jwt.InvalidKeyError("it is signed with no key of the authorization server")
        return self._public[key_id]

    def _age(self) -> float:
        """Seconds since the keys were read."""
        return time.monotonic() - self._fetched_at

    async def _fetch(self) -> None:
        """Read the public keys; those that were read before are kept if that fails."""
        try:
            async with httpx2.AsyncClient(timeout=FETCH_TIMEOUT_S, trust_env=False) as client:
                url = self._settings.oauth_jwks_url or await self._published(client)
                answer = await client.get(url)
                answer.raise_for_status()
                self._public = _public_keys(answer.json())
        except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, KeyError) as error:
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
            stated = answer.json() if answer.is_success else None
            if isinstance(stated, dict) and stated.get("issuer") == self._settings.oauth_issuer:
                return str(stated["jwks_uri"])
        raise KeyError("jwks_uri")


def _public_keys(published: Any) -> Mapping[str, PublicKey]:
    """Return the keys of a key set by their ids; those that cannot be used are left out, as RFC 7517 says (5).

    :raises ValueError: If it is no key set, or none of its keys can be used.
    """
    stated = published.get("keys") if isinstance(published, dict) else None
    keys = [one for one in stated if isinstance(one, dict)] if isinstance(stated, list) else []
    found = {str(one.get("kid") or ""): key for one in keys if (key := _public_key(one)) is not None}
    if not found:
        raise ValueError("the key set has no key that can be used")
    return found


def _public_key(stated: Mapping[str, Any]) -> PublicKey | None:
    """An RSA key that names no algorithm is for all of its kind; the curve of another key decides."""
    try:
        key = PyJWK(dict(stated))
    except (jwt.PyJWTError, AttributeError, TypeError):  # the types of its members are not checked there
        return None
    if key.algorithm_name not in ALGORITHMS:
        return None
    is_open = key.key_type == "RSA" and not stated.get("alg")
    return PublicKey(key, OF_RSA if is_open else (key.algorithm_name,))
