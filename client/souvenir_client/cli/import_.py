"""`souvenir import`: import of exports of this and other systems."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from souvenir_client.cli.failures import Negative
from souvenir_client.cli.options import client_of
from souvenir_client.cli.output import answer, counted, note, progress_bar, say, wire
from souvenir_client.cli.parameters import agent_option, source_option

if TYPE_CHECKING:
    from souvenir_client.importing import ImportReport, Reason

KINDS = (
    "jsonl",
    "markdown",
    "chatgpt",
    "claude",
    "mem0",
    "mcp-memory",
    "graph",
    "locrit",
    "mcp-sqlite",
    "letta",
    "graphiti",
    "hindsight",
)

SHOWN_PLACES = 5


@click.command("import")
@click.argument("path", type=click.Path(path_type=Path), help="A file, a zip archive or a folder.")
@click.option("--kind", type=click.Choice(KINDS), help="Format of the file. Default: detected.")
@source_option("Prefix of the source paths. Default: one for each kind.")
@agent_option
def import_(path: Path, kind: str | None, source: str | None, agent: str | None) -> None:
    """Import a file or a folder.

    Formats: exports of Souvenir, JSON lines, Markdown folders, conversations of ChatGPT and Claude, dumps of mem0 and
    of MCP's server-memory, graphs, the files of Locrits, the database of the MCP Local Memory server, agent files of
    Letta, graphs of Graphiti and Zep, and memories of Hindsight. Invalid items are reported and skipped. Importing the
    same file again changes nothing. Exit code 1: nothing was usable.
    """
    imported(path, kind=kind, source=source, agent=agent)


def imported(path: Path, *, kind: str | None, source: str | None, agent: str | None) -> None:
    """Import a path, and report the result."""
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
        note(f"The file is incomplete: {lost} of {one.counted} {one.noun} are missing.")
    _note("Not imported", report.skipped)
    _note("Imported with changes", report.altered)
    if report.skipped_count and not report.imported + report.updated + report.unchanged:
        raise Negative("Nothing was usable.")


def _sentence(report: ImportReport) -> str:
    nouns = {
        ("memory", "memories"): report.memories,
        ("session", "sessions"): report.sessions,
        ("message", "messages"): report.messages,
        ("block", "blocks"): report.blocks,
        ("statement about concepts", "statements about concepts"): report.concepts,
    }
    stored = [counted(counts.imported, *noun) for noun, counts in nouns.items() if counts.imported]
    if report.links and report.kind in ("mcp-memory", "graphiti"):
        stored.append(counted(report.links, "relation", "relations"))
    said = f"Imported {', '.join(stored) or 'nothing new'} ({report.kind})"
    if report.updated:
        said += f"; {report.updated} updated"
    if report.unchanged:
        said += f"; {report.unchanged} already stored"
    if report.gone:
        said += f"; {report.gone} of an earlier import no longer in the file, and kept"
    return f"{said}."


def _note(title: str, reasons: Sequence[Reason]) -> None:
    for reason in reasons:
        places = ", ".join(reason.places[:SHOWN_PLACES]) + (", …" if reason.count > SHOWN_PLACES else "")
        note(f"{title}: {reason.count} ({places}): {reason.reason}")
