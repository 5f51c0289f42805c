"""`souvenir config`: the saved file, which the client and a service on this machine read."""

from __future__ import annotations

import re
from typing import Any

import click

from souvenir_client.cli.failures import Negative, Unusable
from souvenir_client.cli.output import Column, answer, draw_table, json_text, note, say
from souvenir_client.saved import change, read, saved_path

SECRET = re.compile("key|token|secret|password", re.IGNORECASE)
MASK = "****"

NAME = re.compile("[A-Za-z][A-Za-z0-9_]*")


def _named(_: click.Context, __: click.Parameter, name: str) -> str:
    if not NAME.fullmatch(name):
        raise click.BadParameter(f"{name!r} is not a name of a setting.")
    return name.lower()


name_argument = click.argument("name", metavar="NAME", callback=_named, help="Name of a setting; case does not matter.")


@click.group()
def config() -> None:
    """Show and change the saved file, which holds defaults for settings of the environment and of .env.

    The file is ~/.souvenir/config.json, or the path in CONFIG_FILE. The client reads souvenir_url, souvenir_api_key,
    souvenir_agent and souvenir_home from it; a service on this machine reads its settings, by name in any case.
    """


@config.command("list")
def list_() -> None:
    """List the saved values; secrets are masked."""
    found = {name: _masked(name, value) for name, value in sorted(_saved().items())}
    answer({"path": str(saved_path()), "saved": found}, lambda: _draw(found))


@config.command()
@name_argument
def get(name: str) -> None:
    """Print a saved value, also a secret.

    Exit code 1: the name is not saved.
    """
    found = _saved()
    if name not in found:
        raise Negative(f"{name} is not saved in {saved_path()}.")
    answer({"name": name, "value": found[name]}, lambda: say(_text(found[name])))


@config.command("set")
@name_argument
@click.argument("value", metavar="VALUE", help="The value, as in an environment variable.")
def set_(name: str, value: str) -> None:
    """Save a value under a name, replacing an earlier value."""
    _change(name, value, f"{name} is saved")


@config.command()
@name_argument
def unset(name: str) -> None:
    """Remove a saved value.

    Exit code 1: the name is not saved.
    """
    if not _change(name, None, f"{name} is removed"):
        raise click.exceptions.Exit(1)


def _change(name: str, value: str | None, done: str) -> bool:
    path = saved_path()
    try:
        changed = change(path, name, value)
    except ValueError as error:
        raise Unusable(f"{error}.") from error
    document = {"path": str(path), "name": name, "changed": changed}
    answer(document, lambda: say(f"{done}: {path}" if changed else f"{path}: nothing to change."))
    return changed


def _saved() -> dict[str, Any]:
    try:
        return read(saved_path())
    except ValueError as error:
        raise Unusable(f"{error}.") from error


def _masked(name: str, value: Any) -> Any:
    return MASK if SECRET.search(name) and value not in (None, "") else value


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json_text(value)


def _draw(found: dict[str, Any]) -> None:
    if not found:
        note(f"Nothing is saved in {saved_path()}.")
        return
    draw_table([Column("NAME"), Column("VALUE", cut=True)], ([name, _text(value)] for name, value in found.items()))
