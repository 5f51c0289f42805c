"""Files: durable and private ones, and those that ship with the service (`models/`, `config/`)."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_INSTALLED = _PACKAGE / "resources"
RESOURCES = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parent
"""The folder of `models/` and `config/`: in the package if it was installed from a wheel, otherwise the checkout."""

PRIVATE_UMASK = 0o077
"""Takes every permission of group and others from new files and folders."""


def resource(path: Path) -> Path:
    """Resolve a relative path below RESOURCES if it exists there, otherwise below the working directory."""
    shipped = RESOURCES / path
    return shipped if shipped.exists() else path.absolute()


def sync(path: Path) -> None:
    """Flush a file or folder to disk (fsync)."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(path: Path) -> None:
    """Create a folder that only its owner can read, durably, if it does not exist."""
    if not path.is_dir():
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        sync(path.parent)


def sha256_of(path: Path) -> str:
    """Return the file's SHA-256 in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_private(path: Path, text: str) -> None:
    """Write a whole file, durably, that only its owner can read; a kill leaves the file as it was before."""
    partial = path.with_name(path.name + ".partial")
    partial.unlink(missing_ok=True)
    with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)
    sync(path.parent)
