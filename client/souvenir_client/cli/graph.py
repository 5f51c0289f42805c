"""`souvenir graph`: export and import of an agent's graph."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from souvenir_client.cli.export import STDOUT, whole_file
from souvenir_client.cli.import_ import imported
from souvenir_client.cli.options import client_of
from souvenir_client.cli.output import answer, inert_json, inert_xml, say
from souvenir_client.errors import UnreadableAnswer

if TYPE_CHECKING:
    from souvenir_client.records.enums import GraphFileFormat

FORMATS = ("json", "graphml")

agent_argument = click.argument("agent", help="Name of the agent.")


@click.group()
def graph() -> None:
    """Export and import the graph of an agent."""


@graph.command()
@agent_argument
@click.argument("file", type=click.Path(allow_dash=True), default=STDOUT, help="Where to; - is stdout.")
@click.option(
    "--format", "written_as", type=click.Choice(FORMATS), default="json", show_default=True, help="Format of the file."
)
@click.option("--embeddings", is_flag=True, help="Include the vectors of messages; JSON only.")
def export(agent: str, file: str, written_as: GraphFileFormat, embeddings: bool) -> None:
    """Export an agent's graph: users, sessions, messages, concepts, topics, memories and their relations."""
    with client_of() as client:
        pieces = client.agents.graph(agent, format=written_as, embeddings=embeddings)
        # Requested before a file is opened, so that a refusal leaves nothing behind.
        first = next(pieces, None)
        if first is None:
            raise UnreadableAnswer(client.server_url, "an empty graph")
        if file == STDOUT:
            inert = inert_json if written_as == "json" else inert_xml
            for text in _texts(chain([first], pieces)):
                click.echo(inert(text), nl=False)
            return
        with whole_file(Path(file)) as opened:
            written = sum(opened.write(piece) for piece in chain([first], pieces))
    answer({"path": file, "bytes": written}, lambda: say(f"Wrote the graph of {agent} to {file}."))


@graph.command("import")
@agent_argument
@click.argument("path", type=click.Path(path_type=Path), help="A file, or a folder of Locrit.")
def import_(agent: str, path: Path) -> None:
    """Import a graph: JSON or GraphML of Souvenir, or the files of Locrits.

    Concepts are extracted from the messages again; their names, descriptions and relations are imported. Invalid items
    are reported and skipped. Importing the same file again changes nothing. Exit code 1: nothing was usable.
    """
    imported(path, kind=None, source=None, agent=agent)


def _texts(pieces: Iterable[bytes]) -> Iterator[str]:
    decoder = codecs.getincrementaldecoder("utf-8")()
    yield from map(decoder.decode, pieces)
    yield decoder.decode(b"", final=True)
