"""`souvenir keys`: API keys. A key is printed once, when it is created or rotated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from souvenir_client.cli.options import client_of, global_options
from souvenir_client.cli.output import Column, answer, confirm, day, draw_table, note, say, wire
from souvenir_client.cli.parameters import yes_option

if TYPE_CHECKING:
    from souvenir_client.records import KeyRecord, KeysResponse, NewKeyResponse, OwnKeyResponse, UsageResponse

KINDS = {
    "none": "No key is required: every caller is admin.",
    "env": "The key is the setting API_KEY of the service, with the role admin.",
}

QUOTAS = ("requests_per_minute", "memories", "stored_bytes", "jobs_per_day", "extractions_per_day")


def _quotas_of(context: click.Context, option: click.Parameter, given: Sequence[str]) -> dict[str, int]:
    quotas: dict[str, int] = {}
    for one in given:
        name, _, number = one.partition("=")
        if name not in QUOTAS or not number.isdecimal():
            raise click.BadParameter(f"{one!r} is not NAME=NUMBER with a NAME of {', '.join(QUOTAS)}", param=option)
        quotas[name] = int(number)
    return quotas


quota_option = click.option(
    "--quota",
    "quotas",
    callback=_quotas_of,
    metavar="NAME=NUMBER",
    multiple=True,
    help=f"Limit of the key; repeatable. Names: {', '.join(QUOTAS)}.",
)
id_argument = click.argument("key_id", metavar="ID", help="Id of a key in `souvenir keys list`.")


@click.group()
def keys() -> None:
    """List, create, rotate and revoke API keys, and show the permissions of the own key."""


@keys.command()
def me() -> None:
    """Show the permissions of the own key."""
    with client_of() as client:
        own = client.keys.me()
    answer(wire(own), lambda: say(described(own)))


def described(own: OwnKeyResponse) -> str:
    """The permissions of a key, in a sentence."""
    if own.type in KINDS:
        return KINDS[own.type]
    reach = "everything" if own.role == "admin" else f"the namespace {own.namespace or 'default'}"
    below = f", limited to {', '.join(own.prefixes)} and below" if own.prefixes else ""
    return f"The key {own.name} has the role {own.role} for {reach}{below}."


@keys.command("list")
def list_() -> None:
    """List keys, oldest first, including revoked ones."""
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
@click.argument("name", help="Name of the key.")
@click.option(
    "--role",
    type=click.Choice(["read-only", "read-write", "admin"]),
    required=True,
    help="Role of the key; the first key must be admin.",
)
@click.option(
    "--prefix",
    "prefixes",
    metavar="PATH",
    multiple=True,
    help="Source path that the key may access; repeatable. Keys other than admin need one, or --namespace.",
)
@quota_option
def create(name: str, role: str, prefixes: tuple[str, ...], quotas: Mapping[str, int]) -> None:
    """Create a key for the namespace in --namespace. The key is printed only once."""
    with client_of() as client:
        made = client.in_namespace(None).keys.create(
            name=name,
            role=role,  # type: ignore[arg-type]  # click has checked the choice
            prefixes=prefixes,
            namespace=global_options().namespace,
            quotas=quotas,
        )
    _show(made)


@keys.command()
@id_argument
@quota_option
def limit(key_id: str, quotas: Mapping[str, int]) -> None:
    """Set the quotas of a key, replacing all present ones; without --quota it keeps only the service's defaults."""
    with client_of() as client:
        done = client.keys.update(key_id, quotas=quotas)
    answer(wire(done), lambda: say(f"Changed the quotas of {done.id}."))


@keys.command()
@click.argument("key_id", metavar="ID", required=False, help="Id of another key, for admins; by default the own key.")
def usage(key_id: str | None) -> None:
    """Show the quotas of a key and what it has used of them."""
    with client_of() as client:
        found = client.figures.usage(key_id=key_id) if key_id else client.figures.usage()
    answer(wire(found), lambda: _draw_usage(found))


def _draw_usage(found: UsageResponse) -> None:
    used, quotas = wire(found.used), wire(found.quotas)
    columns = [Column("QUOTA"), Column("USED"), Column("LIMIT")]
    draw_table(columns, ([name, str(used[name]), str(quotas.get(name) or "none")] for name in used))


@keys.command()
@id_argument
@yes_option
def rotate(key_id: str, yes: bool) -> None:
    """Replace the secret of a key; the old one is invalid immediately."""
    confirm(f"Replace {key_id}? Its users need the new secret.", yes=yes)
    with client_of() as client:
        made = client.keys.rotate(key_id)
    _show(made)


@keys.command()
@id_argument
@yes_option
def revoke(key_id: str, yes: bool) -> None:
    """Revoke a key immediately and permanently."""
    confirm(f"Revoke {key_id} permanently?", yes=yes)
    with client_of() as client:
        done = client.keys.revoke(key_id)
    answer(wire(done), lambda: say(f"Revoked {done.id}."))


def _show(made: NewKeyResponse) -> None:
    answer(wire(made), lambda: say(made.key))
    note(f"This is the key {made.name} ({made.id}). It is shown only once.")
