"""The hooks in the settings of Claude Code: a change is planned and shown before it is written.

Invariants: everything else is preserved, also the hooks of other programs; a file that cannot be preserved (comments,
duplicate keys) is refused. A file is replaced atomically, with its mode, at the target of symbolic links, and its
previous version is kept next to it. The API key is never written.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shlex
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path, PurePath
from typing import Any

from souvenir_client.hooks.events import Hook

TIMEOUTS_S: Mapping[Hook, int] = {Hook.SESSION_START: 5, Hook.PROMPT: 5, Hook.STOP: 15, Hook.PRE_COMPACT: 15}
"""Timeouts of Claude Code: some seconds after the hook's own limit."""

PROGRAM = "souvenir"
URL_NAME = "SOUVENIR_URL"
INDENT = "  "
OWN_MODE = 0o600


class SettingsUnusable(Exception):
    """The settings cannot be changed safely."""


@dataclass(frozen=True, slots=True)
class Change:
    """A planned change of a settings file.

    :param path: The target of symbolic links.
    :param before: None if there is no file.
    """

    path: Path
    before: str | None
    after: str

    @property
    def is_needed(self) -> bool:
        return self.after != (self.before or "")

    def diff(self) -> str:
        lines = difflib.unified_diff(
            (self.before or "").splitlines(keepends=True),
            self.after.splitlines(keepends=True),
            str(self.path) if self.before is not None else os.devnull,
            str(self.path),
        )
        return "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)


def settings_path(environment: Mapping[str, str], *, project: Path | None = None) -> Path:
    """Return the settings file of the user, or that of a project's folder."""
    if project is not None:
        return project / ".claude" / "settings.json"
    named = environment.get("CLAUDE_CONFIG_DIR")
    return (Path(named) if named else Path.home() / ".claude") / "settings.json"


def plan(path: Path, executable: str, *, remove: bool = False, server: str | None = None) -> Change:
    """Plan to add the hooks with that executable, or to remove them.

    :param server: The address for the hooks; on removal, only this address is removed.
    :raises SettingsUnusable: If the file cannot be changed.
    :raises OSError: If it cannot be read.
    """
    real = Path(os.path.realpath(path))
    before = _read(real)
    settings = _parsed(real, before) if before and before.strip() else {}
    changed = deepcopy(settings)
    if remove:
        _remove_hooks(changed)
        _remove_address(changed, server)
    else:
        _put_in(real, changed, executable)
        if server is not None:
            _put_in_address(real, changed, server)
    same = changed == settings
    return Change(real, before, (before or "") if same else _written(changed, before or ""))


def apply(change: Change) -> Path | None:
    """Write the change.

    :returns: The copy of the previous version; None if there was no file.
    :raises SettingsUnusable: If the file was changed since it was planned.
    :raises OSError: If it cannot be written.
    """
    if _read(change.path) != change.before:
        raise SettingsUnusable(f"{change.path} was changed in the meantime; run the command again.")
    change.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode, backup = OWN_MODE, None
    if change.before is not None:
        mode = change.path.stat().st_mode & 0o777
        backup = change.path.with_name(f"{change.path.name}.{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}.bak")
        _write(backup, change.before, mode)
    _write(change.path, change.after, mode)
    return backup


def command_of(hook: Hook, executable: str) -> str:
    """Return the command for the shell in which Claude Code runs it."""
    return f"{shlex.quote(executable)} hook {hook.value}"


def _put_in(path: Path, settings: dict[str, Any], executable: str) -> None:
    hooks = settings.setdefault("hooks", {})
    if not isinstance(hooks, dict):
        raise SettingsUnusable(f'"hooks" in {path} is not an object; repair it first.')
    for hook in Hook:
        ours = {"type": "command", "command": command_of(hook, executable), "timeout": TIMEOUTS_S[hook]}
        groups = hooks.setdefault(hook.event_name, [])
        if not isinstance(groups, list):
            raise SettingsUnusable(f'"hooks.{hook.event_name}" in {path} is not a list; repair it first.')
        places = [(entries, at) for entries in map(_entries, groups) for at, one in enumerate(entries) if _is_ours(one)]
        for entries, at in places[:1]:
            entries[at] = {**entries[at], **ours}
        for entries, at in reversed(places[1:]):
            del entries[at]
        groups[:] = [group for group in groups if _entries(group) or not any(_entries(group) is e for e, _ in places)]
        if not places:
            groups.append({"hooks": [ours]})


def _remove_hooks(settings: dict[str, Any]) -> None:
    """Remove our entries, and containers that become empty."""
    hooks = settings.get("hooks")
    if not isinstance(hooks, dict):
        return
    for name, groups in list(hooks.items()):
        if not isinstance(groups, list) or not any(_is_ours(one) for group in groups for one in _entries(group)):
            continue
        kept = []
        for group in groups:
            entries = _entries(group)
            others = [one for one in entries if not _is_ours(one)]
            if len(others) == len(entries):
                kept.append(group)
            elif others:
                kept.append({**group, "hooks": others})
        hooks[name] = kept
        if not kept:
            del hooks[name]
            if not hooks:
                del settings["hooks"]


def _put_in_address(path: Path, settings: dict[str, Any], server: str) -> None:
    variables = settings.setdefault("env", {})
    if not isinstance(variables, dict):
        raise SettingsUnusable(f'"env" in {path} is not an object; repair it first.')
    variables[URL_NAME] = server


def _remove_address(settings: dict[str, Any], server: str | None) -> None:
    """Another address is kept: it was set by the user."""
    variables = settings.get("env")
    if server is not None and isinstance(variables, dict) and variables.get(URL_NAME) == server:
        del variables[URL_NAME]
        if not variables:
            del settings["env"]


def _entries(group: Any) -> list[Any]:
    """Return the hooks of a group; none if it is not a group."""
    entries = group.get("hooks") if isinstance(group, dict) else None
    return entries if isinstance(entries, list) else []


def _is_ours(entry: Any) -> bool:
    """Return True if the entry runs `souvenir hook`, at any path and with any environment before it."""
    command = entry.get("command") if isinstance(entry, dict) else None
    if not isinstance(command, str):
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    return any(PurePath(word).name == PROGRAM and after == "hook" for word, after in pairwise(words))


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise SettingsUnusable(f"{path} is not UTF-8; repair it first.") from error


def _parsed(path: Path, text: str) -> dict[str, Any]:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) < len(pairs):
            raise SettingsUnusable(f"{path} has a duplicate key in an object; remove it first.")
        return dict(pairs)

    try:
        settings = json.loads(text, object_pairs_hook=once)
    except (ValueError, RecursionError) as error:
        raise SettingsUnusable(
            f"{path} is not plain JSON ({error}), and comments would be lost; see docs/editors.md for the manual setup."
        ) from error
    if not isinstance(settings, dict):
        raise SettingsUnusable(f"{path} is not a JSON object; repair it first.")
    return settings


def _written(settings: dict[str, Any], before: str) -> str:
    """Return the settings as text, with the previous indentation and ending."""
    indented = re.search(r'^([ \t]+)"', before, re.MULTILINE)
    text = json.dumps(
        settings, indent=indented[1] if indented else INDENT, ensure_ascii=bool(before) and before.isascii()
    )
    if not before or before.endswith("\n"):
        text += "\n"
    return text.replace("\n", "\r\n") if "\r\n" in before else text


def _write(path: Path, text: str, mode: int) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    written = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(handle, mode)
            file.write(text.encode())
            file.flush()
            os.fsync(handle)
        os.replace(written, path)
    finally:
        with suppress(FileNotFoundError):
            written.unlink()
