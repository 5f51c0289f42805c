"""The saved settings file: one JSON object, which the service reads and `souvenir config` writes.

Names are those of the settings, in any case, or in the style of other systems (`sqlitePath`). This module handles the
content of the file; `souvenir.core.settings` gives the environment precedence and validates values. An unreadable file
is an error and never treated as empty.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource

from souvenir.core.errors import SavedSettingsUnusable

DEFAULT_PATH = Path("~/.souvenir/config.json")

CLIENT_SETTINGS = frozenset({"souvenir_url", "souvenir_api_key", "souvenir_agent", "souvenir_home"})
"""Settings of the client, which reads the same file."""

OPENAI_MODEL_SETTINGS: Mapping[str, tuple[str, str]] = {
    "embedding_model": ("embed_model", "embed_provider"),
    "model": ("extract_model", "extract_provider"),
}
"""Names used by a memory server that supports only OpenAI: the setting of the model, and that of its provider."""

_NEW_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def expanded(path: Path) -> Path:
    """Return the path with `~` as the home folder; that of an unknown user is unchanged."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path


class SavedSource(InitSettingsSource):
    """The saved file as a settings source, after the environment and `.env` have named the file."""

    def __init__(self, settings_class: type[BaseSettings]) -> None:
        # Nothing is read yet, so there are no names to match with those of the fields.
        PydanticBaseSettingsSource.__init__(self, settings_class)
        self.init_kwargs = {}

    def __call__(self) -> dict[str, Any]:
        found = saved_settings(self.current_state.get("config_file"))
        return InitSettingsSource(self.settings_cls, found)() if found else {}


def saved_settings(named: str | Path | None) -> dict[str, Any]:
    """Return the settings in the file, by names in lower case; null and empty values are skipped.

    :param named: None for the file in the home folder, which may be missing.
    :raises SavedSettingsUnusable: If it cannot be read, or is not a JSON object.
    """
    path = DEFAULT_PATH if named is None else Path(named)
    try:
        content = _read(expanded(path), named is not None)
    except ValueError as error:
        raise SavedSettingsUnusable(path, str(error)) from error
    found = {_name(key): value for key, value in content.items() if value not in (None, "")}
    for name, (model, provider) in OPENAI_MODEL_SETTINGS.items():
        if name in found:
            found.setdefault(model, found.pop(name))
            found.setdefault(provider, "openai")
    return found


def unknown(found: Iterable[str], known: Iterable[str]) -> list[str]:
    """Return the names among them that are not settings."""
    return sorted(set(found) - {name.lower() for name in known} - CLIENT_SETTINGS)


def _name(key: str) -> str:
    """Normalise a name: `sqlitePath`, `SQLITE_PATH` and `sqlite_path` are equal."""
    return (key if key.isupper() else _NEW_WORD.sub("_", key)).lower()


def _read(path: Path, is_named: bool) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        if is_named:
            raise ValueError("it is not there; write it, or unset CONFIG_FILE") from error
        return {}
    except OSError as error:
        raise ValueError(f"{error.strerror}; make it readable, or name another") from error
    except UnicodeDecodeError as error:
        raise ValueError("it is not UTF-8; save it again as UTF-8") from error
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        # The decoder's own message contains the position and no value.
        raise ValueError(f"it is not JSON ({error}); correct it") from error
    if not isinstance(found, dict):
        raise ValueError("it holds no JSON object; write one with the settings' names")
    return found
