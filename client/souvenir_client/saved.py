"""The saved file: one JSON object with settings of the service and defaults of the client.

It is replaced atomically and readable by its owner only, because it may contain keys. Names are case-insensitive. An
unreadable file is an error, never an empty one.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

PATH_VARIABLE = "CONFIG_FILE"
DEFAULT_PATH = "~/.souvenir/config.json"
OWN_MODE = 0o600


def saved_path() -> Path:
    """Return the file in the environment, else the one in the home folder; it need not exist."""
    return expanded(os.environ.get(PATH_VARIABLE) or DEFAULT_PATH)


def expanded(path: str | Path) -> Path:
    """The path with `~` expanded; unchanged if the user is unknown."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def saved(name: str) -> str | None:
    """The value of a name, as text; None if it is not saved.

    :raises ValueError: If the file cannot be read; the message gives the remedy.
    """
    value = read(saved_path()).get(name)
    return str(value).strip() or None if value is not None else None


def read(path: Path) -> dict[str, Any]:
    """Return all saved values, by lower-case name; empty if the file does not exist.

    :raises ValueError: If the file cannot be read; the message gives the remedy.
    """
    return {name.lower(): value for name, value in _read(path).items()}


def change(path: Path, name: str, value: Any) -> bool:
    """Save a value, replacing an earlier one; None removes it.

    :returns: True if anything changed.
    :raises ValueError: If the existing file cannot be read; then nothing is written.
    :raises OSError: If it cannot be written.
    """
    # If the file is a link, its target is written.
    real = Path(os.path.realpath(path))
    before = _read(real)
    after: dict[str, Any] = {key: kept for key, kept in before.items() if key.lower() != name.lower()}
    if value is not None:
        after[name] = value
    if after == before:
        return False
    _write(real, after)
    return True


def _read(path: Path) -> dict[str, Any]:
    try:
        said = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ValueError(f"{path} cannot be read ({error.strerror}): make it readable") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON ({error}): repair it, or set {PATH_VARIABLE} to another file") from error
    if not isinstance(said, dict):
        raise ValueError(f"{path} is not a JSON object: repair it, or set {PATH_VARIABLE} to another file")
    return said


def _write(path: Path, value: Mapping[str, Any]) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    written = Path(name)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            os.fchmod(handle, OWN_MODE)
            file.write(json.dumps(value, ensure_ascii=False, indent=2) + "\n")
            file.flush()
            os.fsync(handle)
        os.replace(written, path)
    finally:
        with suppress(FileNotFoundError):
            written.unlink()
