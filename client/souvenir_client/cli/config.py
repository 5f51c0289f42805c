"""`souvenir config`: shows and changes the saved file, which the client and the service of this machine read."""

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
        raise click.BadParameter(f"{name!r} is no name of a setting.")
    return name.lower()


name_argument = click.argument("name", metavar="NAME", callback=_named, help="Of a setting, in any case.")


@click.group()
def config() -> None:
    """Show and change the saved file: what neither the environment nor .env says is taken from it.

    It is ~/.souvenir/config.json, or the file that CONFIG_FILE names. The client reads souvenir_url, souvenir_api_key,
    souvenir_agent and souvenir_home from it; a service of this machine reads its settings, by their names in any case.
    """


@config.command("list")
def list_() -> None:
    """Show what is saved; of a secret only that it is there."""
    found = {name: _masked(name, value) for name, value in sorted(_saved().items())}
    answer({"path": str(saved_path()), "saved": found}, lambda: _draw(found))


@config.command()
@name_argument
def get(name: str) -> None:
    """Print what is saved under a name, a secret too.

    Exit code 1: nothing is.
    """
    found = _saved()
    if name not in found:
        raise Negative(f"Nothing is saved as {name} in {saved_path()}.")
    answer({"name": name, "value": found[name]}, lambda: say(_text(found[name])))


@config.command("set")
@name_argument
@click.argument("value", metavar="VALUE", help="Text, as the environment would hold it.")
def set_(name: str, value: str) -> None:
    """Save a value in the place of what is saved under its name."""
    _change(name, value, f"{name} is saved")


@config.command()
@name_argument
def unset(name: str) -> None:
    """Take a value out.

    Exit code 1: nothing is saved under that name.
    """
    if not _change(name, None, f"{name} is taken out"):
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
