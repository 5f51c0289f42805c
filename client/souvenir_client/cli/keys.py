"""`souvenir keys`: who may do what. A key itself is printed once, by what makes or replaces it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from souvenir_client.cli.options import client_of, global_options
from souvenir_client.cli.output import Column, answer, confirm, day, draw_table, note, say
from souvenir_client.cli.parameters import yes_option
from souvenir_client.cli.wire import wire

if TYPE_CHECKING:
    from souvenir_client.records import KeyRecord, KeysResponse, NewKeyResponse, OwnKeyResponse

KINDS = {
    "none": "No key is needed: everyone who can connect is admin.",
    "env": "The key is the setting API_KEY of the service, an admin's.",
}

id_argument = click.argument("key_id", metavar="ID", help="Of a key that `souvenir keys list` shows.")


@click.group()
def keys() -> None:
    """List, make, replace and revoke API keys, and see what one's own may do."""


@keys.command()
def me() -> None:
    """Show what the own key may do."""
    with client_of() as client:
        own = client.keys.me()
    answer(wire(own), lambda: say(described(own)))


def described(own: OwnKeyResponse) -> str:
    """What a key may do, in a sentence."""
    if own.type in KINDS:
        return KINDS[own.type]
    reach = "everything" if own.role == "admin" else f"the namespace {own.namespace or 'default'}"
    below = f", there {', '.join(own.prefixes)} and what lies below" if own.prefixes else ""
    return f"The key {own.name} is {own.role} for {reach}{below}."


@keys.command("list")
def list_() -> None:
    """List keys, oldest first; revoked ones too."""
    with client_of() as client:
        found = client.keys.list()
    answer(wire(found), lambda: _draw(found))


def _draw(found: KeysResponse) -> None:
    columns = [Column("ID"), Column("NAME", cut=True), Column("ROLE"), Column("REACH", cut=True), Column("LAST USED")]
    draw_table(columns, (_row(key) for key in found.keys))


def _row(key: KeyRecord) -> list[str]:
    below = f":{','.join(key.prefixes)}" if key.prefixes else ""
    reach = "all" if key.role == "admin" else f"{key.namespace or 'default'}{below}"
    return [key.id, key.name, "revoked" if key.revoked else key.role, reach, day(key.last_used_at)]


@keys.command()
@click.argument("name", help="What people call it.")
@click.option(
    "--role",
    type=click.Choice(["read-only", "read-write", "admin"]),
    required=True,
    help="What it may do; the first key must be an admin's.",
)
@click.option(
    "--prefix",
    "prefixes",
    metavar="PATH",
    multiple=True,
    help="A source path that it may see; several may be given. A key that is no admin's needs one, or --namespace.",
)
def create(name: str, role: str, prefixes: tuple[str, ...]) -> None:
    """Make a key, for the namespace that --namespace names; it is printed this once."""
    with client_of() as client:
        made = client.in_namespace(None).keys.create(
            name=name,
            role=role,  # type: ignore[arg-type]  # click has checked the choice
            prefixes=prefixes,
            namespace=global_options().namespace,
        )
    _show(made)


@keys.command()
@id_argument
@yes_option
def rotate(key_id: str, yes: bool) -> None:
    """Replace a key's secret; the old one stops at once."""
    confirm(f"Replace {key_id}? Whoever uses it has to be told the new one.", yes=yes)
    with client_of() as client:
        made = client.keys.rotate(key_id)
    _show(made)


@keys.command()
@id_argument
@yes_option
def revoke(key_id: str, yes: bool) -> None:
    """Let a key stop at once and for good."""
    confirm(f"Revoke {key_id} for good?", yes=yes)
    with client_of() as client:
        done = client.keys.revoke(key_id)
    answer(wire(done), lambda: say(f"Revoked {done.id}."))


def _show(made: NewKeyResponse) -> None:
    answer(wire(made), lambda: say(made.key))
    note(f"That is the key {made.name} ({made.id}), and it is shown this once.")
