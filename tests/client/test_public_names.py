"""The public names of the client do not change: exports, errors, records, methods, commands and their options.

`public_names.txt` is the committed list. A name that is added on purpose is added there:

    PYTHONPATH=client python -m tests.client.test_public_names > tests/client/public_names.txt
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path

import click

import souvenir_client
from souvenir_client import AsyncSouvenir, Souvenir, errors, importing, learning, records, session
from souvenir_client.cli.root import souvenir
from souvenir_client.records import enums

FROZEN = Path(__file__).with_name("public_names.txt")


def public_names() -> Iterator[str]:
    yield from (f"souvenir_client.{name}" for name in sorted(souvenir_client.__all__))
    yield from (called(f"souvenir_client.{one.__name__}", one) for one in (AsyncSouvenir, Souvenir, learning, session))
    yield from (f"souvenir_client.importing.{name}" for name in importing.__all__)
    yield called("souvenir_client.importing.import_file", importing.import_file)
    for name, kind in inspect.getmembers(errors, inspect.isclass):
        if issubclass(kind, errors.SouvenirError):
            yield f"errors.{name}({', '.join(base.__name__ for base in kind.__bases__)})"
    for name in sorted(records.__all__):
        fields = (field.name for field in dataclasses.fields(getattr(records, name)))
        yield f"records.{name}: {' '.join(fields)}"
    yield from (f"records.enums.{name}" for name in sorted(vars(enums)) if name[0].isupper() and name != "Literal")
    with Souvenir("http://127.0.0.1:9") as client:
        yield from methods("souvenir", client)
        for group in sorted(name for name in vars(client) if not name.startswith("_")):
            yield from methods(f"souvenir.{group}", getattr(client, group))
    with click.Context(souvenir, info_name="souvenir") as context:
        yield from commands(context)


def methods(place: str, holder: object) -> Iterator[str]:
    for name, method in inspect.getmembers(type(holder), inspect.isfunction):
        if not name.startswith("_"):
            yield called(f"{place}.{name}", method)


def called(name: str, function: object) -> str:
    """The name with its parameters and their defaults, without types."""
    shown, has_star = [], False
    for one in inspect.signature(function).parameters.values():  # type: ignore[arg-type]
        if one.name == "self":
            continue
        if one.kind is one.KEYWORD_ONLY and not has_star:
            has_star = True
            shown.append("*")
        default = ... if inspect.isfunction(one.default) else one.default
        shown.append(str(one.replace(annotation=one.empty, default=default)))
    return f"{name}({', '.join(shown)})"


def commands(context: click.Context) -> Iterator[str]:
    words = [context.command_path]
    for parameter in context.command.params:
        spelled = "/".join([*parameter.opts, *parameter.secondary_opts])
        words.append(f"[{spelled}]" if isinstance(parameter, click.Option) else spelled.upper())
    yield " ".join(words)
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            assert command is not None
            yield from commands(click.Context(command, info_name=name, parent=context))


def test_the_public_names_are_the_frozen_ones():
    assert list(public_names()) == FROZEN.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    sys.stdout.write("".join(f"{line}\n" for line in public_names()))
