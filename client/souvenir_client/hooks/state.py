"""The state of the hooks: small JSON files in the user's state folder.

Invariants: a file is replaced atomically; an unreadable file is an empty state; only the user can read the files. Hooks
run concurrently: a read-modify-write holds the lock of the file.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

KEPT_S = 30 * 24 * 3600.0
"""How long the state of a session is kept after its last hook."""

LOCK_POLL_S = 0.01
"""Polling interval of a lock, which is held while a small file is written; the system's own wait has no timeout."""


def state_dir(environment: Mapping[str, str]) -> Path:
    """Return the state folder of the XDG specification; as it requires, relative paths are ignored."""
    named = environment.get("XDG_STATE_HOME", "")
    base = Path(named) if Path(named).is_absolute() else Path.home() / ".local" / "state"
    return base / "souvenir"


def session_file(folder: Path, session_id: str, suffix: str) -> Path:
    """Return the file of a session; its name is a hash, and safe for any id."""
    digest = hashlib.sha256(session_id.encode(errors="surrogatepass")).hexdigest()[:32]
    return folder / "sessions" / f"{digest}.{suffix}.json"


def read_state(path: Path) -> dict[str, Any]:
    """The stored state; empty if the file is missing or unreadable."""
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def write_state(path: Path, value: Mapping[str, Any]) -> None:
    """Replace the file atomically and durably.

    :raises OSError: If the folder is not writable.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    written = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}")
    try:
        with os.fdopen(os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(json.dumps(value).encode())
            file.flush()
            os.fsync(file.fileno())
        os.replace(written, path)
    finally:
        with suppress(FileNotFoundError):
            written.unlink()


@contextmanager
def locked(path: Path, *, wait_s: float) -> Iterator[bool]:
    """Hold the lock of a file; False if another process holds it for longer than `wait_s`.

    The lock is a separate file, because the file itself is replaced. It is released when the process ends.

    :raises OSError: If the folder is not writable.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600), "rb") as file:
        is_mine = _taken(file.fileno(), time.monotonic() + wait_s)
        if is_mine:
            os.utime(file.fileno())
        yield is_mine


def _taken(file: int, end_s: float) -> bool:
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            left_s = end_s - time.monotonic()
            if left_s <= 0:
                return False
            time.sleep(min(LOCK_POLL_S, left_s))
        else:
            return True


def forget_old_sessions(folder: Path, now_s: float) -> None:
    """Remove the files of sessions that had no hook for `KEPT_S`."""
    with suppress(FileNotFoundError), os.scandir(folder / "sessions") as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                if now_s - entry.stat().st_mtime > KEPT_S:
                    Path(entry.path).unlink()
