"""`souvenir backup` and `souvenir restore`: backups of the whole database, for admin keys."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from souvenir_client.cli.options import client_of
from souvenir_client.cli.output import Column, answer, confirm, draw_table, minute_of, say, wire
from souvenir_client.cli.parameters import yes_option

if TYPE_CHECKING:
    from souvenir_client.records import BackupsResponse


@click.group(invoke_without_command=True)
@click.option("--prefix", metavar="WORD", help="Prefix of the backup's name. Default: manual.")
@click.pass_context
def backup(context: click.Context, prefix: str | None) -> None:
    """Create a backup; `backup list` lists the backups."""
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
    columns = [Column("NAME"), Column("CREATED (UTC)"), Column("MEMORIES", right=True), Column("MIB", right=True)]
    draw_table(
        columns,
        ([one.name, minute_of(one.created_at), str(one.memories), f"{one.bytes / 2**20:.1f}"] for one in found.backups),
    )


@click.command()
@click.argument("name", help="Name of a backup in `souvenir backup list`.")
@yes_option
def restore(name: str, yes: bool) -> None:
    """Restore a backup; the current state is backed up first."""
    confirm(f"Restore {name}, in all namespaces?", yes=yes)
    with client_of() as client:
        done = client.backups.restore(backup_name=name)
    answer(wire(done), lambda: say(f"{done.message}."))
