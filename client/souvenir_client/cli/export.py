"""`souvenir export`: the data of an agent or a namespace as lines of JSON.

A file is written under a temporary name and renamed when it is complete.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Any

import click

from souvenir_client.cli.failures import Unusable
from souvenir_client.cli.options import client_of
from souvenir_client.cli.output import Advance, answer, counted, inert_json, progress_bar, say
from souvenir_client.cli.parameters import STDIN
from souvenir_client.errors import UnreadableAnswer

STDOUT = STDIN

COUNTS_OF_AN_AGENT = ("users", "sessions", "messages", "blocks", "memories")


@click.command()
@click.argument("file", type=click.Path(allow_dash=True), default=STDOUT, help="Output file; - is stdout.")
@click.option("--agent", metavar="NAME", help="Export all data of this agent, with messages.")
def export(file: str, agent: str | None) -> None:
    """Export the memories of a namespace, or all data of an agent, as lines of JSON."""
    with client_of() as client:
        lines = client.transfer.export_memories() if agent is None else client.agents.export(agent)
        # Requested before a file is opened, so that a refusal leaves nothing behind.
        header = next(lines, None)
        if header is None:
            raise UnreadableAnswer(client.server_url, "an export without its first line")
        total = _total(header)
        if file == STDOUT:
            for line in chain([header], lines):
                click.echo(inert_json(_text(line)))
            return
        with whole_file(Path(file)) as opened, progress_bar("Exporting") as advance:
            written = _write(opened, chain([header], lines), advance, total)
    answer(
        {"path": file, "lines": written}, lambda: say(f"Wrote {counted(written - 1, 'record', 'records')} to {file}.")
    )


def _total(header: Mapping[str, Any]) -> int:
    """Return the number of lines after the header."""
    if header.get("_header"):
        return int(header["count"])
    return 1 + sum(int(header[name]) for name in COUNTS_OF_AN_AGENT)


def _text(line: Mapping[str, Any]) -> str:
    """Return the line in the service's format."""
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"))


def _write(file: IO[bytes], lines: Iterable[Mapping[str, Any]], advance: Advance, total: int) -> int:
    written = 0
    for written, line in enumerate(lines, 1):
        file.write(_text(line).encode() + b"\n")
        advance(written - 1, total)
    return written


@contextmanager
def whole_file(path: Path) -> Iterator[IO[bytes]]:
    """Write a temporary file that is renamed if the block succeeds, and removed otherwise."""
    try:
        with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            try:
                yield file
                file.flush()
                os.fsync(file.fileno())
                os.replace(file.name, path)
            except BaseException:
                Path(file.name).unlink()
                raise
    except OSError as error:
        raise Unusable(f"{path} cannot be written: {error.strerror or error}.") from error
