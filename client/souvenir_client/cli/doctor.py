"""`souvenir doctor`: checks a service from the outside."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from souvenir_client.cli.failures import ExitCode
from souvenir_client.cli.options import client_of, global_options
from souvenir_client.cli.output import answer, draw, shown

if TYPE_CHECKING:
    from souvenir_client import Souvenir
    from souvenir_client.cli.connection_checks import Finding

COLOURS = {"ok": "green", "warning": "yellow", "failed": "red"}


@click.command()
@click.option("--write", is_flag=True, help="Also store, find and delete a memory.")
def doctor(write: bool) -> None:
    """Check a service from the outside, and report problems.

    Exit code 1: a check failed. Warnings do not count.
    """
    from souvenir_client.cli.connection_checks import Status

    with client_of() as client:
        findings = list(_findings(client, write=write))
        failed = any(finding.status is Status.FAILED for finding in findings)
        document = {
            "server": client.server_url,
            "healthy": not failed,
            "checks": [{"check": one.check, "status": one.status.value, "message": one.message} for one in findings],
        }
    answer(document, lambda: _draw(findings))
    if failed:
        raise click.exceptions.Exit(ExitCode.NEGATIVE)


def _findings(client: Souvenir, *, write: bool) -> Iterator[Finding]:
    from souvenir_client.calls import named_key
    from souvenir_client.cli import connection_checks, service_checks

    said = global_options()
    sends_key = bool(said.api_key or named_key())
    yield connection_checks.secrecy(client.server_url, sends_key=sends_key)
    reached, answered = connection_checks.reached(client.server_url, said.timeout_s)
    yield reached
    if answered is not None:
        yield connection_checks.clock(answered, connection_checks.utc_now())
        yield from service_checks.examined(client, sends_key=sends_key, write=write)


def _draw(findings: list[Finding]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    for finding in findings:
        table.add_row(
            Text(finding.status.value, style=COLOURS[finding.status.value]),
            Text(finding.check),
            Text(shown(finding.message), overflow="fold"),
        )
    draw(table)
