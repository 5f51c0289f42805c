"""Options and arguments shared by several commands, and the parsing of their values."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar

import click

from souvenir_client.cli.failures import Unusable

STDIN = "-"

Command = TypeVar("Command", bound=Callable[..., Any])


class Decorator(Protocol):
    """Adds an option to a command."""

    def __call__(self, command: Command, /) -> Command: ...


agent_option = click.option("--agent", metavar="NAME", help="Name of the agent; the same as --namespace.")
yes_option = click.option("--yes", is_flag=True, help="Skip the confirmation.")
min_score_option = click.option(
    "--min-score",
    metavar="P",
    type=click.FloatRange(0.0, 1.0),
    help="Only results that answer the query with at least this probability.",
)
verify_option = click.option(
    "--verify", is_flag=True, help="Ask the service's reader whether the results answer the query."
)


def source_option(help_text: str) -> Decorator:
    return click.option("--source", metavar="PATH", help=help_text)


def metadata_option(help_text: str) -> Decorator:
    return click.option(
        "--metadata",
        metavar="KEY=VALUE",
        multiple=True,
        callback=lambda _context, _option, said: metadata_of(said),
        help=f"{help_text} KEY=VALUE is text, KEY:=VALUE is JSON; repeatable.",
    )


def tag_option(help_text: str) -> Decorator:
    return click.option("--tag", "tags", metavar="TAG", multiple=True, help=f"{help_text} Repeatable.")


def limit_option(default: int, most: int) -> Decorator:
    return click.option(
        "--limit",
        metavar="N",
        type=click.IntRange(1, most),
        default=default,
        show_default=True,
        help="Maximum number of results.",
    )


def offset_option() -> Decorator:
    return click.option(
        "--offset", metavar="N", type=click.IntRange(min=0), default=0, help="Number of results to skip."
    )


def metadata_of(said: Iterable[str]) -> dict[str, Any]:
    """Parse `key=text` and `key:=json` to one object.

    :raises BadParameter: If a value has neither form.
    """
    metadata: dict[str, Any] = {}
    for pair in said:
        name, equals, value = pair.partition("=")
        if not equals or not name.rstrip(":"):
            raise click.BadParameter(f"{pair!r} is not KEY=VALUE.")
        if name.endswith(":"):
            metadata[name[:-1]] = _json_of(value)
        else:
            metadata[name] = value
    return metadata


def _json_of(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise click.BadParameter(f"{text!r} is not JSON; write KEY=VALUE for text.") from error


def text_of(said: str) -> str:
    """Return the argument, or the content of stdin if it is `-`.

    :raises Unusable: If it is empty, or no text.
    """
    if said == STDIN:
        said = sys.stdin.read().strip("\n")
    if not said.strip():
        raise Unusable("The text is empty.")
    return said
