"""Authentication: map the key of a request to its caller, and the caller to their scope.

The order is: the key, the number of wrong keys from the address, the role, the namespace. A refused caller learns
nothing about stored data, and nothing is read or created for them.
"""

from __future__ import annotations

import hmac
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock

from souvenir.access.keys import ApiKeys
from souvenir.core.errors import Forbidden, TooManyAttempts, Unauthorized
from souvenir.core.types import DEFAULT_NAMESPACE, Role, Scope
from souvenir.store.admin.keys import ApiKey, key_id_of

WINDOW_S = 60.0
"""The time window that starts with the first wrong key of an address; then its count restarts."""

ADDRESSES_KEPT = 10_000
"""Maximum number of remembered addresses that sent a wrong key; about 2 MB."""


class FailedAttempts:
    """Rate limit for wrong keys per address, against guessing. Thread-safe."""

    def __init__(self, *, limit: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit = limit
        self._clock = clock
        self._lock = Lock()
        self._windows: OrderedDict[str, tuple[float, int]] = OrderedDict()  # address -> (start, wrong keys)

    def __len__(self) -> int:
        """The number of remembered addresses."""
        return len(self._windows)

    def require_few(self, address: str) -> None:
        """:raises TooManyAttempts: If the address has sent too many wrong keys."""
        with self._lock:
            begin, count = self._window(address)
        if count >= self._limit:
            raise TooManyAttempts(retry_after_s=max(1, math.ceil(begin + WINDOW_S - self._clock())))

    def count(self, address: str) -> None:
        """Count a wrong key."""
        with self._lock:
            begin, count = self._window(address)
            self._windows[address] = begin, count + 1
            self._windows.move_to_end(address)
            if len(self._windows) > ADDRESSES_KEPT:
                self._windows.popitem(last=False)

    def _window(self, address: str) -> tuple[float, int]:
        now = self._clock()
        begin, count = self._windows.get(address, (now, 0))
        return (begin, count) if now - begin < WINDOW_S else (now, 0)


ANONYMOUS, ENV_KEY = "anonymous", "api-key"
"""The actor in history without a managed key; otherwise it is `key:` and the key's id."""

_RANK = {role: rank for rank, role in enumerate(Role)}


@dataclass(frozen=True, slots=True)
class Caller:
    """The authenticated caller. `key` is None without a key (where none is needed) and with API_KEY; both are admin.

    :param client: The kind of program that sent the request, if it says so.
    """

    actor: str
    role: Role
    key: ApiKey | None = None
    client: str | None = None

    def scope(self, needed: Role, namespace: str | None) -> Scope:
        """Return the scope of the caller.

        :param needed: The minimum role for the action.
        :param namespace: The namespace that the request names, if any.
        :raises Forbidden: If the caller's role is lower, or its key is for another namespace.
        """
        if _RANK[self.role] < _RANK[needed]:
            raise Forbidden(f"This needs a key of the role {needed}, and yours is {self.role}; GET /api/keys/me tells")
        author = None if self.key is None else self.key.principal_id
        if self.key is None or self.key.role is Role.ADMIN:
            return Scope(namespace or DEFAULT_NAMESPACE, self.actor, None, author, self.client)
        own = self.key.namespace or DEFAULT_NAMESPACE
        if namespace not in (None, own):
            raise Forbidden(f"This key is for the namespace {own!r}; name that one in X-Namespace, or none")
        return Scope(own, self.actor, self.key.prefixes or None, author, self.client, author)


class Authenticator:
    """:param env_key: The value of API_KEY; empty if it is unset."""

    def __init__(self, env_key: str, keys: ApiKeys, attempts: FailedAttempts) -> None:
        self._env_key = env_key.encode("utf-8")
        self.keys = keys
        self._attempts = attempts

    @property
    def is_open(self) -> bool:
        """True if requests need no key: API_KEY is unset, and no key was ever created."""
        return not (self._env_key or self.keys.any_made)

    def acting(self, actor: str) -> Caller | None:
        """Return the caller that an actor would be now; None if it would no longer be admitted."""
        key_id = key_id_of(actor)
        if key_id is not None:
            key = next((one for one in self.keys.all() if one.id == key_id and one.revoked_at is None), None)
            return None if key is None else Caller(key.actor, key.role, key)
        admitted = bool(self._env_key) if actor == ENV_KEY else actor == ANONYMOUS and self.is_open
        return Caller(actor, Role.ADMIN) if admitted else None

    def authenticate(self, sent: bytes | None, address: str) -> Caller:
        """Return the caller and count a use of their key.

        A valid key is always admitted, whatever other keys its address sends, since clients may share an address.

        :param sent: The bytes of the key in the request. :param address: The address of the client, if it has one.
        :raises TooManyAttempts: If the key is wrong and the address recently sent too many wrong ones.
        :raises Unauthorized: If the key is wrong, or missing although required.
        """
        try:
            caller = self.reauthenticate(sent)
        except Unauthorized:
            if sent:
                self.count_failure(address)
            raise
        if caller.key is not None:
            self.keys.use(caller.key)
        return caller

    def count_failure(self, address: str) -> None:
        """Count a wrong key or access token.

        :raises TooManyAttempts: If the address recently sent too many.
        """
        self._attempts.require_few(address)
        self._attempts.count(address)

    def reauthenticate(self, sent: bytes | None) -> Caller:
        """Return the caller of a request that was admitted before: its key may have been changed or revoked since.

        :raises Unauthorized: If it would no longer be admitted.
        """
        if not sent:
            if not self.is_open:
                raise Unauthorized("Invalid or missing API key")
            return Caller(ANONYMOUS, Role.ADMIN)
        if self._env_key and hmac.compare_digest(sent, self._env_key):
            return Caller(ENV_KEY, Role.ADMIN)
        key = self.keys.holder_of(sent)
        if key is None:
            raise Unauthorized("Invalid or missing API key")
        return Caller(key.actor, key.role, key)

    def is_key(self, sent: bytes) -> bool:
        """Return whether it is a valid key; a use or a failure is not counted."""
        try:
            self.reauthenticate(sent)
        except Unauthorized:
            return False
        return True

    def is_admin(self, sent: bytes | None, address: str) -> bool:
        """Return whether the request comes from an admin, for routes that return more to admins."""
        try:
            return self.authenticate(sent, address).role is Role.ADMIN
        except (Unauthorized, TooManyAttempts):
            return False
