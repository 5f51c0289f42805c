"""`souvenir install`: adds the hooks to the settings of an editor, after showing the change."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

from souvenir_client.cli.failures import Negative, Unusable
from souvenir_client.cli.options import client_of, global_options
from souvenir_client.cli.output import answer, confirm, note, say
from souvenir_client.hooks.settings import PROGRAM, Change, SettingsUnusable, apply, plan, settings_path


@click.group()
def install() -> None:
    """Connect an editor to the service."""


@install.command("claude-code")
@click.option("--project", is_flag=True, help="Change .claude/settings.json of the current folder instead of your own.")
@click.option("--remove", is_flag=True, help="Remove the hooks.")
@click.option("--yes", is_flag=True, help="Write without asking.")
def claude_code(project: bool, remove: bool, yes: bool) -> None:
    """Put the hooks into the settings of Claude Code; the change is shown first.

    --server is written there as SOUVENIR_URL, and --remove with the same --server takes it out again.
    """
    server = _server()
    path = settings_path(os.environ, project=Path.cwd() if project else None)
    try:
        change = plan(path, "" if remove else executable(), remove=remove, server=server)
        if not change.is_needed:
            answer(_as_json(change, written=False), lambda: say(f"{change.path}: nothing to change."))
            return
        _agree(change, yes)
        backup = apply(change)
    except SettingsUnusable as error:
        raise Unusable(str(error)) from error
    answer(_as_json(change, written=True), lambda: say(_done(change, backup, remove)))


def _server() -> str | None:
    """Return the address given on the command line, not that of the environment.

    :raises UsageError: If an option was given that is not written into settings.
    """
    said = global_options()
    if said.api_key is not None:
        raise click.UsageError(
            "A key is not written into settings: set SOUVENIR_API_KEY in the environment of the editor."
        )
    if said.namespace is not None:
        raise click.UsageError("Hooks do not accept --namespace: set SOUVENIR_AGENT in the environment of the editor.")
    if said.server is None:
        return None
    with client_of() as client:
        return client.server_url


def executable() -> str:
    """The path of this program, so that the editor finds it with any PATH.

    :raises Unusable: If there is no such file.
    """
    started = Path(sys.argv[0])
    if started.name == PROGRAM and started.is_file():
        return str(started.absolute())
    adjacent = Path(sys.executable).parent / PROGRAM
    found = str(adjacent) if adjacent.is_file() else shutil.which(PROGRAM)
    if found is None:
        raise Unusable(f'The program `{PROGRAM}` is not installed: pip install "souvenir-client[cli]".')
    return found


def _agree(change: Change, yes: bool) -> None:
    """Show the change, and ask for confirmation.

    :raises click.ClickException: If nothing is to be written.
    """
    show = note if global_options().as_json else say
    show(change.diff().rstrip("\n"))
    try:
        confirm(f"Write {change.path}?", yes=yes)
    except click.UsageError as error:
        raise Negative(f"Nothing was written. {error.format_message()}") from error


def _done(change: Change, backup: Path | None, remove: bool) -> str:
    kept = f" The previous version is kept in {backup}." if backup is not None else ""
    then = "" if remove else " New sessions use it."
    return f"{change.path} is written.{kept}{then}"


def _as_json(change: Change, *, written: bool) -> dict[str, object]:
    return {"path": str(change.path), "written": written, "diff": change.diff()}
