"""The door: from what a request carries to who asks, and from who asks to what they may see.

The order is: too many wrong keys from the address, the key, the role, the namespace. Whoever is refused learns nothing
of what is stored, and nothing was read or made for them.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from souvenir.access.attempts import FailedAttempts
from souvenir.access.keys import ApiKeys
from souvenir.errors import Forbidden, TooManyAttempts, Unauthorized
from souvenir.store.keys import ApiKey
from souvenir.types import DEFAULT_NAMESPACE, Role, Scope

ANONYMOUS, ENV_KEY = "anonymous", "api-key"
"""What history names as the actor where there is no managed key; with one it is `key:` and the key's id."""

_RANK = {role: rank for rank, role in enumerate(Role)}


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks. `key` is None without a key (nobody needs one) and with API_KEY, which both are admin."""

    actor: str
    role: Role
    key: ApiKey | None = None

    def scope(self, needed: Role, namespace: str | None) -> Scope:
        """What the caller may see.

        :param needed: The least role that may do what is asked.
        :param namespace: The one that the request names, if it names one.
        :raises Forbidden: If the caller's role is less, or its key is for another namespace.
        """
        if _RANK[self.role] < _RANK[needed]:
            raise Forbidden(f"This needs a key of the role {needed}, and yours is {self.role}; GET /api/keys/me tells")
        if self.key is None or self.key.role is Role.ADMIN:
            return Scope(namespace or DEFAULT_NAMESPACE, self.actor)
        own = self.key.namespace or DEFAULT_NAMESPACE
        if namespace not in (None, own):
            raise Forbidden(f"This key is for the namespace {own!r}; name that one in X-Namespace, or none")
        return Scope(own, self.actor, self.key.prefixes or None)


class Door:
    """:param env_key: The value of API_KEY; empty if it is unset."""

    def __init__(self, env_key: str, keys: ApiKeys, attempts: FailedAttempts) -> None:
        self._env_key = env_key.encode("utf-8")
        self._keys = keys
        self._attempts = attempts

    def admit(self, sent: bytes | None, address: str) -> Caller:
        """Who asks, counted as a use of their key.

        :param sent: The bytes of the key that the request carries.
        :raises TooManyAttempts: If the address sent too many wrong ones of late; the key is not looked at then.
        :raises Unauthorized: If the key is wrong, or missing where one is needed.
        """
        if sent:
            self._attempts.require_few(address)
        try:
            caller = self.look_again(sent)
        except Unauthorized:
            if sent:
                self._attempts.count(address)
            raise
        if caller.key is not None:
            self._keys.use(caller.key)
        return caller

    def look_again(self, sent: bytes | None) -> Caller:
        """Who asks now, of a request that was admitted a while ago: its key may have been changed or revoked since.

        :raises Unauthorized: If it would not be admitted any more.
        """
        if not sent:
            if self._env_key or self._keys.any_made:
                raise Unauthorized("Invalid or missing API key")
            return Caller(ANONYMOUS, Role.ADMIN)
        if self._env_key and hmac.compare_digest(sent, self._env_key):
            return Caller(ENV_KEY, Role.ADMIN)
        key = self._keys.holder_of(sent)
        if key is None:
            raise Unauthorized("Invalid or missing API key")
        return Caller(key.actor, key.role, key)

    def admits_admin(self, sent: bytes | None, address: str) -> bool:
        """Whether a request that is answered in any case may be answered in full."""
        try:
            return self.admit(sent, address).role is Role.ADMIN
        except (Unauthorized, TooManyAttempts):
            return False
