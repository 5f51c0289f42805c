"""The output of commands: JSON, sentences, texts, tables and progress bars.

Stored texts are untrusted: control characters are escaped, and texts are never parsed as markup. `rich` draws tables
and bars, and is imported only for them; it uses no colours with NO_COLOR or without a terminal.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import click

from souvenir_client.cli.options import global_options

if TYPE_CHECKING:
    from rich.console import RenderableType

    from souvenir_client.records import AgentSearchResponse, ContextResponse, SearchResponse

PIPED_WIDTH = 10_000
"""Columns of a table without a terminal: rows are lines, and nothing is truncated."""

MAX_CELL_CHARS = 1_000
"""Limit of a text in a table; `get` and `--json` show all of it."""

MIN_CUT_WIDTH = 8
"""Minimum width of a column with truncated texts."""

GAP = 2
"""Width between columns, as `rich` pads them."""

_ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters except tab and line feed, and invisible characters that end a line or change its direction."""

_ACTS_IN_JSON = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""The control characters that JSON does not escape."""

Advance = Callable[[int, int | None], None]
"""Receives the progress, and the total if it is known."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    :param cut: Whether its texts are truncated to the width of the terminal.
    """

    title: str
    right: bool = False
    cut: bool = False


def answer(document: Any, draw: Callable[[], None]) -> None:
    """Print the answer of a command: `document` as JSON if requested, otherwise the output of `draw`."""
    if global_options().as_json:
        click.echo(json_text(document))
    else:
        draw()


def json_text(value: Any) -> str:
    """Return readable JSON in which every control character is escaped."""
    return inert_json(json.dumps(value, ensure_ascii=not _writes_unicode(), indent=2))


def inert_json(text: str) -> str:
    """The same JSON with escaped control characters, which only occur inside of its strings."""
    return _ACTS_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def inert_xml(text: str) -> str:
    """The same XML."""
    return _ACTS_IN_JSON.sub(lambda found: f"&#{ord(found[0])};", text)


def shown(text: str) -> str:
    """Return a text for people: with line feeds only, and with escaped control characters."""
    plain = text.replace("\r\n", "\n")
    return _ACTS.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode("ascii"), plain)


def one_line(text: str) -> str:
    return shown(" ".join(text.split()))


def say(text: str) -> None:
    click.echo(shown(text))


def note(text: str) -> None:
    """Print a message that is no part of the answer."""
    click.echo(shown(text), err=True)


def counted(count: int, one: str, many: str) -> str:
    """A number with its unit."""
    return f"{count} {one if count == 1 else many}"


def heading(*parts: str) -> None:
    click.echo(click.style("  ".join(map(one_line, parts)), bold=True))


def minute_of(wire_time: str | None) -> str:
    """A time of the service in UTC, to the minute."""
    return "-" if wire_time is None else wire_time[:16].replace("T", " ")


def day(wire_time: str | None) -> str:
    """A time of the service in UTC, to the day."""
    return "-" if wire_time is None else wire_time[:10]


def said_by(role: str, name: str | None, user: str | None) -> str:
    """The author of a message: the role, and the name if it is known."""
    speaker = name or (user if role == "user" else None)
    return role if speaker is None else f"{role} ({speaker})"


def note_of_page(shown_count: int, offset: int, total: int) -> None:
    """Print the number of results on this page and in total."""
    end = offset + shown_count
    note(f"{shown_count} of {total}" + (f"; --offset {end} shows more" if end < total else ""))


def note_of_answer(found: AgentSearchResponse | ContextResponse | SearchResponse) -> None:
    """Print whether the results answer the query, if a reader was asked."""
    if found.answered is not None:
        why = f": {found.answer_reason}." if found.answer_reason else ""
        note(f"Answered: {found.answered}{f': {one_line(found.answer_quote)}' if found.answer_quote else why}")


def draw_table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
    """Print one row a line, as wide as the terminal unless untruncated columns need more."""
    from rich.cells import cell_len
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column.title, justify="right" if column.right else "left", no_wrap=not column.cut)
    widths = [max(MIN_CUT_WIDTH, len(column.title)) if column.cut else len(column.title) for column in columns]
    for row in rows:
        cells = [_cell(text) for text in row]
        widths = [
            width if column.cut else max(width, cell_len(cell))
            for column, width, cell in zip(columns, widths, cells, strict=True)
        ]
        table.add_row(*(Text(cell, no_wrap=True, overflow="ellipsis") for cell in cells))
    draw(table, least_width=sum(widths) + GAP * (len(widths) - 1))


def draw(table: RenderableType, *, least_width: int = 0) -> None:
    """Print an element of `rich`; without a terminal, no line is broken or padded."""
    from rich.console import Console

    console = Console(file=sys.stdout, markup=False, highlight=False, emoji=False)
    console.width = max(console.width, least_width) if console.is_terminal else PIPED_WIDTH
    with console.capture() as drawn:
        console.print(table)
    for line in drawn.get().splitlines():
        click.echo(line.rstrip())


@contextmanager
def progress_bar(title: str) -> Iterator[Advance]:
    """Show a progress bar on stderr while the block runs, if stderr is a terminal."""
    if not sys.stderr.isatty():
        yield lambda done, total: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as progress:
        task = progress.add_task(title, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


def confirm(question: str, *, yes: bool) -> None:
    """Ask for confirmation unless `yes` is set.

    :raises UsageError: If there is no terminal.
    :raises Exit: If the user declines.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("There is no terminal to confirm this: add --yes.")
    if not click.confirm(shown(question), err=True):
        note("Nothing was changed.")
        raise click.exceptions.Exit(1)


def _cell(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= MAX_CELL_CHARS else line[:MAX_CELL_CHARS] + "…"


def _writes_unicode() -> bool:
    return (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "") == "utf8"


EXTRA = "extra"
"""The field of a record for all other fields of the JSON object."""


def wire(value: Any) -> Any:
    """Return a record, or a list or mapping of records, as JSON values; fields missing in the answer are omitted."""
    if is_dataclass(value):
        own = {
            field.name: wire(said)
            for field in fields(value)
            if field.name != EXTRA and ((said := getattr(value, field.name)) is not None or field.default is not None)
        }
        return own | wire(getattr(value, EXTRA, {}))
    if isinstance(value, Mapping):
        return {name: wire(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [wire(item) for item in value]
    return value
