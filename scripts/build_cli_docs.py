"""Writes the reference of docs/cli.md from the tree of commands; a test checks that it is current.

python -m scripts.build_cli_docs
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "cli.md"
BEGIN, END = "<!-- reference: begin -->", "<!-- reference: end -->"


def reference() -> str:
    """Return the exit codes, the global options, and every command with its options."""
    from souvenir_client.cli.failures import MEANINGS
    from souvenir_client.cli.root import souvenir

    parts = ["| exit code | means |\n|---|---|"]
    parts += [f"| {int(code)} | {meaning} |" for code, meaning in MEANINGS.items()]
    with click.Context(souvenir, info_name="souvenir") as context:
        parts.append("\nEvery command takes these, before and after its name:\n")
        everywhere = [parameter for parameter in souvenir.params if parameter.name != "version"]
        parts += _table(context, everywhere)
        shared = {parameter.name for parameter in souvenir.params}
        for below in commands(context):
            parts += _section(below, shared)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(parts))


def commands(context: click.Context) -> Iterator[click.Context]:
    """Yield a context for each command below one, groups before their commands."""
    group = context.command
    if not isinstance(group, click.Group):
        return
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if command is None:
            raise LookupError(f"{context.command_path} lists {name} and does not have it")
        below = click.Context(command, info_name=name, parent=context)
        yield below
        yield from commands(below)


def _section(context: click.Context, shared: Collection[str]) -> Iterator[str]:
    yield f"\n### `{context.command_path}`\n"
    yield from (" ".join(paragraph.split()) + "\n" for paragraph in (context.command.help or "").split("\n\n"))
    usage = " ".join(piece for piece in context.command.collect_usage_pieces(context) if piece != "[OPTIONS]")
    yield f"    {context.command_path} {usage}".rstrip() + "\n"
    yield from _table(context, [one for one in context.command.params if one.name not in shared])


def _table(context: click.Context, parameters: list[click.Parameter]) -> Iterator[str]:
    rows = [record for parameter in parameters if (record := parameter.get_help_record(context))]
    if rows:
        yield "| | |\n|---|---|"
        yield from (f"| `{_cell(name)}` | {_cell(meaning)} |" for name, meaning in rows)


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def page(text: str) -> str:
    """The page with the reference between its marks."""
    head, rest = text.split(BEGIN)
    return f"{head}{BEGIN}\n{reference()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "client"))
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
