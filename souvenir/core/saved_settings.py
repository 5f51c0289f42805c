"""The saved file of settings: one JSON object, which the service reads and `souvenir config` writes.

A name stands in it as the setting is called, in any case, or as other systems write it (`sqlitePath`). Here is only
the content of the file; `souvenir.core.settings` has the precedence of the environment and validates values. A file
that cannot be read is an error, never an empty one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic_settings import BaseSettings, InitSettingsSource

from souvenir.core.errors import SavedSettingsUnusable

DEFAULT_PATH = Path("~/.souvenir/config.json")

OF_THE_CLIENT = frozenset({"souvenir_url", "souvenir_api_key", "souvenir_agent", "souvenir_home"})
"""The client reads the same file."""

MODELS_OF_OPENAI: Mapping[str, tuple[str, str]] = {
    "embedding_model": ("embed_model", "embed_provider"),
    "model": ("extract_model", "extract_provider"),
}
"""Names of a memory server that knows no other provider: the setting of the model, and that of who has it."""

_NEW_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def expanded(path: Path) -> Path:
    """The path with `~` as the home folder; one of a user who is not known stays as it is."""
    try:
        return path.expanduser()
    except RuntimeError:
        return path


class SavedSource(InitSettingsSource):
    """What the saved file says, after the environment and `.env` said which file it is."""

    def __init__(self, settings_class: type[BaseSettings]) -> None:
        super().__init__(settings_class, {})

    def __call__(self) -> dict[str, Any]:
        return InitSettingsSource(self.settings_cls, saved_settings(self.current_state.get("config_file")))()


def saved_settings(named: str | Path | None) -> dict[str, Any]:
    """What the file says, by names in lower case; what is null or empty is not said.

    :param named: None for the one in the home folder, which need not be there.
    :raises SavedSettingsUnusable: If it cannot be read, or holds no JSON object.
    """
    path = DEFAULT_PATH if named is None else Path(named)
    try:
        content = _read(expanded(path), named is not None)
    except ValueError as error:
        raise SavedSettingsUnusable(path, str(error)) from error
    said = {_name(key): value for key, value in content.items() if value not in (None, "")}
    for theirs, (model, provider) in MODELS_OF_OPENAI.items():
        if theirs in said:
            said.setdefault(model, said.pop(theirs))
            said.setdefault(provider, "openai")
    return said


def unknown(said: Iterable[str], known: Iterable[str]) -> list[str]:
    """The names among them that are no setting."""
    return sorted(set(said) - {name.lower() for name in known} - OF_THE_CLIENT)


def _name(key: str) -> str:
    """`sqlitePath`, `SQLITE_PATH` and `sqlite_path` are one name."""
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
        said = json.loads(text)
    except (ValueError, RecursionError) as error:
        # The decoder's own words name the place and no value.
        raise ValueError(f"it is not JSON ({error}); correct it") from error
    if not isinstance(said, dict):
        raise ValueError("it holds no JSON object; write one with the settings' names")
    return said
