"""How anything is printed: JSON, sentences, texts, tables and a bar for what takes long.

A stored text is somebody's text: no character of it reaches the terminal that would do something there, and none of it
is read as markup. `rich` draws the tables and the bar, and is imported for them only; it leaves colours out where
NO_COLOR says so or nobody looks.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from souvenir_client.cli.options import global_options

if TYPE_CHECKING:
    from rich.console import RenderableType

PIPED_WIDTH = 10_000
"""Columns of a table that no terminal shows: its rows are lines, and nothing is left out for room."""

MAX_CELL_CHARS = 1_000
"""Of one text in a table; `get` and `--json` show all of it."""

MIN_CUT_WIDTH = 8
"""Of a column whose texts are shortened."""

GAP = 2
"""Between columns, as `rich` pads them."""

_ACTS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but tab and line feed, and what turns or ends a line unseen."""

_ACTS_IN_JSON = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
"""Those that JSON does not write as an escape by itself."""

Advance = Callable[[int, int | None], None]
"""Told how much is done, and of how much, if that is known."""


@dataclass(frozen=True, slots=True)
class Column:
    """Of a table.

    :param cut: Whether its texts are shortened where a line has no room for them.
    """

    title: str
    right: bool = False
    cut: bool = False


def answer(document: Any, draw: Callable[[], None]) -> None:
    """Print the answer of a command: `document` as JSON if that is asked for, else what `draw` prints."""
    if global_options().as_json:
        click.echo(json_text(document))
    else:
        draw()


def json_text(value: Any) -> str:
    """Readable JSON in which every character that would act on a terminal is an escape."""
    return inert_json(json.dumps(value, ensure_ascii=not _writes_unicode(), indent=2))


def inert_json(text: str) -> str:
    """The same JSON; outside of its strings no such character can stand."""
    return _ACTS_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def inert_xml(text: str) -> str:
    """The same XML."""
    return _ACTS_IN_JSON.sub(lambda found: f"&#{ord(found[0])};", text)


def shown(text: str) -> str:
    """A text for people: its line ends are line feeds, and what would act is written as an escape."""
    plain = text.replace("\r\n", "\n")
    return _ACTS.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode("ascii"), plain)


def one_line(text: str) -> str:
    return shown(" ".join(text.split()))


def say(text: str) -> None:
    click.echo(shown(text))


def note(text: str) -> None:
    """Tell something that is no part of the answer."""
    click.echo(shown(text), err=True)


def counted(count: int, one: str, many: str) -> str:
    """A number with its noun."""
    return f"{count} {one if count == 1 else many}"


def heading(*parts: str) -> None:
    click.echo(click.style("  ".join(map(one_line, parts)), bold=True))


def moment(wire_time: str | None) -> str:
    """A time of the service to the minute, in UTC as it is sent."""
    return "-" if wire_time is None else wire_time[:16].replace("T", " ")


def day(wire_time: str | None) -> str:
    """The day of a time of the service, in UTC as it is sent."""
    return "-" if wire_time is None else wire_time[:10]


def said_by(role: str, name: str | None, user: str | None) -> str:
    """Who says a message: the role, and who that is where it is known."""
    speaker = name or (user if role == "user" else None)
    return role if speaker is None else f"{role} ({speaker})"


def note_of_page(shown_count: int, offset: int, total: int) -> None:
    """Say how many there are beside those of this page."""
    end = offset + shown_count
    note(f"{shown_count} of {total}" + (f"; --offset {end} shows more" if end < total else ""))


def draw_table(columns: Sequence[Column], rows: Iterable[Sequence[str]]) -> None:
    """Print a row a line, as wide as the terminal unless what is never cut needs more."""
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
    """Print something of `rich`; where no terminal shows it, no line is broken and none ends in blanks."""
    from rich.console import Console

    console = Console(file=sys.stdout, markup=False, highlight=False, emoji=False)
    console.width = max(console.width, least_width) if console.is_terminal else PIPED_WIDTH
    with console.capture() as drawn:
        console.print(table)
    for line in drawn.get().splitlines():
        click.echo(line.rstrip())


@contextmanager
def progress_bar(title: str) -> Iterator[Advance]:
    """A bar on stderr while the block runs, where somebody sees it."""
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
    """Go on if `yes` was given or a person says so.

    :raises UsageError: If there is nobody to ask.
    :raises Exit: If the person says no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("Nobody can be asked here: say --yes if you are sure.")
    if not click.confirm(shown(question), err=True):
        note("Nothing was changed.")
        raise click.exceptions.Exit(1)


def _cell(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= MAX_CELL_CHARS else line[:MAX_CELL_CHARS] + "…"


def _writes_unicode() -> bool:
    return (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "") == "utf8"
