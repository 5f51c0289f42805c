"""Files: durable ones, and those that ship with the service (`models/`, `config/`)."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_INSTALLED = _PACKAGE / "resources"
RESOURCES = _INSTALLED if _INSTALLED.is_dir() else _PACKAGE.parent
"""The folder of `models/` and `config/`: in the package if it was installed from a wheel, otherwise the checkout."""


def resource(path: Path) -> Path:
    """A relative path below RESOURCES if something exists there, otherwise below the working directory."""
    shipped = RESOURCES / path
    return shipped if shipped.exists() else path.absolute()


def sync(path: Path) -> None:
    """Wait until the file or folder is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sha256_of(path: Path) -> str:
    """The file's SHA-256 in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
