"""`souvenir backup` and `souvenir restore`: copies of the whole database, which take an admin's key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from souvenir_client.cli.options import client_of
from souvenir_client.cli.output import Column, answer, confirm, draw_table, moment, say
from souvenir_client.cli.parameters import yes_option
from souvenir_client.cli.wire import wire

if TYPE_CHECKING:
    from souvenir_client.records import BackupsResponse


@click.group(invoke_without_command=True)
@click.option("--prefix", metavar="WORD", help="What its name begins with: manual without it.")
@click.pass_context
def backup(context: click.Context, prefix: str | None) -> None:
    """Make a backup; `backup list` shows those that there are."""
    if context.invoked_subcommand is not None:
        return
    with client_of() as client:
        made = client.backups.create(prefix=prefix)
    answer(wire(made), lambda: say(f"{made.message}."))


@backup.command("list")
def list_() -> None:
    """List backups, newest first."""
    with client_of() as client:
        found = client.backups.list()
    answer(wire(found), lambda: _draw(found))


def _draw(found: BackupsResponse) -> None:
    columns = [Column("NAME"), Column("MADE (UTC)"), Column("MEMORIES", right=True), Column("MIB", right=True)]
    draw_table(
        columns,
        ([one.name, moment(one.created_at), str(one.memories), f"{one.bytes / 2**20:.1f}"] for one in found.backups),
    )


@click.command()
@click.argument("name", help="Of a backup that `souvenir backup list` shows.")
@yes_option
def restore(name: str, yes: bool) -> None:
    """Go back to a backup; what is there now is backed up first."""
    confirm(f"Go back to {name}, in all namespaces?", yes=yes)
    with client_of() as client:
        done = client.backups.restore(backup_name=name)
    answer(wire(done), lambda: say(f"{done.message}."))
