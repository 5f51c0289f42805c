"""Exit codes and error messages of the commands.

With `--json` the message is in `{"error": {...}}`, also on stderr, so that stdout contains answers only.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any

import click

from souvenir_client.cli.output import json_text, one_line, shown
from souvenir_client.errors import ApiError, ConnectionFailed, NotImportable, SouvenirError, UnreadableAnswer


class ExitCode(IntEnum):
    """The meaning of the exit status of every command."""

    DONE = 0
    NEGATIVE = 1
    WRONG_USE = 2
    NOBODY_ANSWERS = 3
    INTERRUPTED = 130
    NOBODY_READS = 141


MEANINGS = {
    ExitCode.DONE: "Success.",
    ExitCode.NEGATIVE: "The service refused, or the result is negative: nothing found, partly done, a check failed.",
    ExitCode.WRONG_USE: "Wrong usage, or a file cannot be used.",
    ExitCode.NOBODY_ANSWERS: "No service answers at the address.",
    ExitCode.INTERRUPTED: "Interrupted with Ctrl-C.",
    ExitCode.NOBODY_READS: "The reader of the output closed it, as `head` does.",
}


AGENT_NOT_FOUND = "agent_not_found"


class Negative(click.ClickException):
    """The result is negative."""

    exit_code = ExitCode.NEGATIVE


class Unusable(click.ClickException):
    """A file or a folder cannot be used."""

    exit_code = ExitCode.WRONG_USE


def exit_code_of(error: Exception) -> ExitCode:
    """The exit code of an exception; unexpected exceptions are raised."""
    match error:
        case ApiError():
            return ExitCode.NEGATIVE
        case ConnectionFailed() | UnreadableAnswer():
            return ExitCode.NOBODY_ANSWERS
        case click.ClickException(exit_code=code):
            return ExitCode(code) if code in set(ExitCode) else ExitCode.NEGATIVE
        case NotImportable() | OSError() | UnicodeError():
            return ExitCode.WRONG_USE
        case SouvenirError():
            return ExitCode.NEGATIVE
        case _:
            raise error


def report(error: Exception, arguments: Sequence[str]) -> ExitCode:
    """Print an error message to stderr.

    :param arguments: The command line, which determines the format even if it could not be parsed.
    :return: The exit status.
    """
    code = exit_code_of(error)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
    elif asks_for_json(arguments):
        click.echo(json_text({"error": _fields(error)}), err=True)
    else:
        click.echo(shown(_sentence(error)), err=True)
    return code


def report_interrupt(arguments: Sequence[str]) -> ExitCode:
    """Report an interrupt in JSON if requested; a person knows."""
    if asks_for_json(arguments):
        fields = {"exit_code": int(ExitCode.INTERRUPTED), "message": "Interrupted."}
        click.echo(json_text({"error": fields}), err=True)
    return ExitCode.INTERRUPTED


def asks_for_json(arguments: Sequence[str]) -> bool:
    """Return True if the command line has `--json` among its options."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return "--json" in options


def _sentence(error: Exception) -> str:
    match error:
        case click.UsageError(ctx=context) if context is not None:
            return f"{one_line(error.format_message())} See: {context.command_path} --help"
        case click.ClickException():
            return error.format_message()
        case UnicodeError():
            return "The input is not UTF-8 text."
        case OSError(strerror=str(reason), filename=str(name)):
            return f"{name} cannot be used: {reason}."
        case ApiError(status=status, code=code, detail=detail) if code == AGENT_NOT_FOUND:
            # The service's message names its route; replace it by the command.
            return f"{detail.partition(';')[0]}; create it with `souvenir agents create NAME` ({status}, {code})"
        case _:
            return str(error)


def _fields(error: Exception) -> dict[str, Any]:
    fields: dict[str, Any] = {"exit_code": int(exit_code_of(error)), "message": _sentence(error)}
    if isinstance(error, ApiError):
        fields |= {"status": error.status, "code": error.code, "detail": error.detail, "request_id": error.request_id}
    return fields
