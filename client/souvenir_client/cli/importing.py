"""`souvenir import`: what other systems have kept, into the service."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from souvenir_client.cli.failures import Negative
from souvenir_client.cli.options import client_of
from souvenir_client.cli.output import answer, counted, note, progress_bar, say
from souvenir_client.cli.parameters import agent_option, source_option
from souvenir_client.cli.wire import wire

if TYPE_CHECKING:
    from souvenir_client.importing import ImportReport, Reason

KINDS = ("jsonl", "markdown", "chatgpt", "claude", "mem0", "mcp-memory", "graph", "locrit")

SHOWN_PLACES = 5


@click.command("import")
@click.argument("path", type=click.Path(path_type=Path), help="A file, a zip or a folder.")
@click.option("--kind", type=click.Choice(KINDS), help="What it is an export of; what it says itself without it.")
@source_option("What the sources of its memories begin with; each kind has its own without it.")
@agent_option
def import_(path: Path, kind: str | None, source: str | None, agent: str | None) -> None:
    """Store what a file or a folder holds that is not there yet.

    It takes exports of Souvenir, memories line by line, folders of Markdown, conversations of ChatGPT and Claude, dumps
    of mem0 and of MCP's server-memory, graphs, and what Locrits kept. What cannot be used is reported and does not stop
    the rest; the same import again changes nothing. Exit code 1: nothing of it could be used.
    """
    imported(path, kind=kind, source=source, agent=agent)


def imported(path: Path, *, kind: str | None, source: str | None, agent: str | None) -> None:
    """Import it, and say what became of it."""
    from souvenir_client.importing import Kind, import_file

    with client_of(agent) as client, progress_bar("Importing") as advance:
        report = import_file(
            client,
            path,
            kind=None if kind is None else Kind(kind),
            agent=agent,
            source=source,
            progress=lambda said: advance(said.done, said.total),
        )
    answer(wire(report), lambda: say(_sentence(report)))
    for one in report.missing:
        lost = one.counted - one.held
        note(f"Not in the file: {lost} of the {one.counted} {one.noun} that it should have. Was it cut?")
    _note("Not imported", report.skipped)
    _note("Imported, but not just as it was", report.altered)
    if report.skipped_count and not report.imported + report.updated + report.unchanged:
        raise Negative("Nothing of it could be used.")


def _sentence(report: ImportReport) -> str:
    nouns = {
        ("memory", "memories"): report.memories,
        ("session", "sessions"): report.sessions,
        ("message", "messages"): report.messages,
        ("block", "blocks"): report.blocks,
        ("statement about concepts", "statements about concepts"): report.concepts,
    }
    stored = [counted(counts.imported, *noun) for noun, counts in nouns.items() if counts.imported]
    if report.links and report.kind == "mcp-memory":
        stored.append(counted(report.links, "relation", "relations"))
    said = f"Imported {', '.join(stored) or 'nothing new'} ({report.kind})"
    if report.updated:
        said += f"; {counted(report.updated, 'was', 'were')} brought up to date"
    if report.unchanged:
        said += f"; {counted(report.unchanged, 'was', 'were')} there already"
    if report.gone:
        one, many = "of before is not in it any more, and stays", "of before are not in it any more, and stay"
        said += f"; {counted(report.gone, one, many)}"
    return f"{said}."


def _note(title: str, reasons: Sequence[Reason]) -> None:
    for reason in reasons:
        places = ", ".join(reason.places[:SHOWN_PLACES]) + (", …" if reason.count > SHOWN_PLACES else "")
        note(f"{title}: {reason.count} ({places}): {reason.reason}")
