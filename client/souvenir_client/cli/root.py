"""The tree of commands, with their modules, and the end of a run.

A command's module is imported when the command is called, or when help lists it. No error ends with a traceback: every
expected error becomes one sentence and an exit code (`failures`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, NoReturn

import click

from souvenir_client.cli.failures import ExitCode, report, report_interrupt
from souvenir_client.cli.options import with_global_options
from souvenir_client.errors import SouvenirError

NAME = "souvenir"

PLACES: Mapping[str, str] = {
    "serve": "serve:serve",
    "doctor": "doctor:doctor",
    "add": "memories:add",
    "search": "memories:search",
    "list": "memories:list_",
    "tags": "memories:tags_",
    "get": "memories:get",
    "delete": "memories:delete",
    "extract": "extract:extract",
    "agents": "agents:agents",
    "context": "conversations:context",
    "chat": "conversations:chat",
    "export": "export:export",
    "import": "import_:import_",
    "graph": "graph:graph",
    "backup": "backups:backup",
    "restore": "backups:restore",
    "keys": "keys:keys",
    "mcp": "mcp:mcp",
    "config": "config:config",
    "install": "install:install",
    "hook": "hook:hook",
    "completion": "completion:completion",
}
"""Every command, in the order of the help: the module below `souvenir_client.cli` that holds it, and its name there."""


class Root(click.Group):
    """`souvenir`: finds its commands in `PLACES`, and turns every failure into a sentence and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(PLACES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.commands and cmd_name in PLACES:
            module, _, name = PLACES[cmd_name].partition(":")
            built = import_module(f"souvenir_client.cli.{module}")
            self.commands[cmd_name] = with_global_options(getattr(built, name))
        return self.commands.get(cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            # Click suggests similar names only among commands that are loaded.
            raise click.exceptions.NoSuchCommand(error.command_name, possibilities=PLACES, ctx=ctx) from error

    def main(self, args: Sequence[str] | None = None, *_: Any, **__: Any) -> NoReturn:
        """Run a command line, and end the process with one of `ExitCode`."""
        sys.exit(_run(self, list(sys.argv[1:] if args is None else args)))

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; a closed output pipe ends it silently."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # Discard the rest of the buffer, instead of failing again when the interpreter ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise click.exceptions.Exit(ExitCode.NOBODY_READS) from None
        return result


def _run(root: Root, arguments: list[str]) -> int:
    try:
        ended = click.Group.main(root, arguments, NAME, standalone_mode=False)
    except click.Abort:
        return report_interrupt(arguments)
    except (click.ClickException, SouvenirError, OSError, UnicodeError) as error:
        return report(error, arguments)
    return ended if isinstance(ended, int) else ExitCode.DONE


def _show_version(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from souvenir_client import __version__

        click.echo(f"{NAME} {__version__}")
        context.exit()


@click.group(NAME, cls=Root)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_show_version, help="Print the version."
)
def souvenir() -> None:
    """Memory for agents: run the service, and store, search, export and import memories.

    Every command accepts the options below before and after its name. Exit codes: 0 success, 1 refused or not found, 2
    wrong usage, 3 no service answers.
    """


with_global_options(souvenir)
