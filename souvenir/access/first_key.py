"""The first key: a service without keys that other machines can reach creates an admin key at its start.

The key is written to a file that only its owner can read, then stored, then shown once in the log. The start
after a kill in between finds the file and stores that key, so the file never contains an invalid key. No key is created
if any key exists or existed. The lock of the data folder prevents concurrent starts; of replicas that share a database,
one makes the key, and it is in the log and the file of that one.
"""

from __future__ import annotations

from pathlib import Path

import structlog

from souvenir.access.keys import ApiKeys, KeyDraft, is_secret, new_secret
from souvenir.core.errors import Conflict, StoreUnusable
from souvenir.core.files import write_private
from souvenir.core.types import Role, Scope

NAME = "initial-admin"
ACTOR = "first-start"
"""The actor of the key's event in the audit log."""

log = structlog.get_logger(__name__)


def require_first_key(keys: ApiKeys, path: Path) -> None:
    """Create the first admin key, unless a key was created before.

    :raises StoreUnusable: If its file cannot be written, or has other content.
    """
    try:
        if keys.any_made:
            _warn_if_outdated(keys, path)
            return
        secret = _read(path)
        if secret is None:
            secret = new_secret()
            write_private(path, f"{secret}\n")
        elif not is_secret(secret):
            raise StoreUnusable(f"{path} does not contain an admin key; delete it, and the next start makes one")
    except OSError as error:
        raise StoreUnusable(
            f"The first admin key cannot be kept in {path} ({error.strerror}); give this user the folder and the file, "
            "or set API_KEY"
        ) from error
    try:
        keys.create(KeyDraft(NAME, Role.ADMIN), by=Scope(actor=ACTOR), secret=secret, only_first=True)
    except Conflict:
        path.unlink()
        return
    log.warning(
        "first_admin_key_made",
        key=secret,
        file=str(path),
        reason="other machines can connect, and there was no key: now every request needs one",
        action="send it as X-API-Key, make a key for each client with POST /api/keys, and delete the file",
    )


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        return None


def _warn_if_outdated(keys: ApiKeys, path: Path) -> None:
    secret = _read(path)
    if secret is not None and keys.holder_of(secret.encode()) is None:
        log.warning(
            "first_admin_key_outdated",
            file=str(path),
            reason="no current key is in this file: the first one was rotated or revoked",
            action="delete the file",
        )
