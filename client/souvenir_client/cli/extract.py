"""`souvenir extract`: extract memories from a transcript."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from souvenir_client.cli.failures import Negative, Unusable
from souvenir_client.cli.options import client_of, make_agent
from souvenir_client.cli.output import Column, answer, draw_table, note, say, wire
from souvenir_client.cli.parameters import STDIN, agent_option, source_option, text_of
from souvenir_client.errors import TimedOut

if TYPE_CHECKING:
    from souvenir_client.records import ExtractJob, ExtractResult

DEFAULT_WAIT_S = 300.0
FINISHED_WELL = "completed"


@click.command()
@click.argument("file", type=click.Path(allow_dash=True), help="The transcript, as text or JSON; - is stdin.")
@source_option("Source path of the memories. Default: the whole namespace.")
@agent_option
@click.option("--dry-run", is_flag=True, help="Show the decisions without applying them.")
@click.option(
    "--wait",
    "wait_s",
    metavar="SECONDS",
    type=click.FloatRange(min=0.0, max=86_400.0),
    default=DEFAULT_WAIT_S,
    show_default=True,
    help="How long to wait for the result; 0 does not wait.",
)
def extract(file: str, source: str | None, agent: str | None, dry_run: bool, wait_s: float) -> None:
    """Extract memories from a conversation, and print the decisions; --agent creates the agent if it is new."""
    transcript = text_of(STDIN) if file == STDIN else _read(Path(file))
    with client_of(agent) as client:
        make_agent(client, None if dry_run else agent)
        taken = client.extraction.start(messages=transcript, source=source or "", dry_run=dry_run)
        if not wait_s:
            answer(wire(taken), lambda: say(f"Extraction {taken.job_id} is {taken.status}."))
            return
        try:
            job = client.extraction.wait(taken.job_id, timeout_s=wait_s)
        except TimedOut as error:
            raise Negative(f"Extraction {taken.job_id} is still running after {wait_s:g} s; it continues.") from error
    answer(wire(job), lambda: _draw(job))
    if job.status != FINISHED_WELL or job.result is None:
        raise Negative(f"The extraction is {job.status}: {job.error or 'it has no result'}.")
    if job.result.error is not None:
        raise Negative(
            f"The language model failed, and nothing was changed: {job.result.error_message or job.result.error}"
        )


def _read(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise Unusable(f"{path} is not UTF-8 text.") from error
    if not text.strip():
        raise Unusable(f"{path} is empty.")
    return text


def _draw(job: ExtractJob) -> None:
    if job.result is None:
        return
    columns = [Column("ACTION"), Column("ID", right=True), Column("TEXT", cut=True), Column("REASON", cut=True)]
    actions: Sequence[Mapping[str, Any]] = job.result.actions or []
    if actions:
        draw_table(columns, (_row(action) for action in actions))
    note(_summary(job.result))


def _row(action: Mapping[str, Any]) -> list[str]:
    memory_id = next((action[name] for name in ("id", "new_id", "old_id") if action.get(name) is not None), "")
    fact = action.get("fact") or {}
    text = action.get("text") or fact.get("text") or ""
    return [str(action.get("action", "")), str(memory_id), str(text), str(action.get("reason") or "")]


def _summary(result: ExtractResult) -> str:
    counts = (
        f"{result.extracted_count or 0} found, {result.stored_count or 0} added, {result.updated_count or 0} updated, "
        f"{result.deleted_count or 0} deleted, {result.noop_count or 0} unchanged"
    )
    if result.dry_run:
        return f"Dry run, nothing was changed: {counts}."
    if result.approval:
        return f"Waits for approval, nothing was changed: {counts}."
    skipped = result.extra.get("skipped_reason")
    return f"{counts}." if not skipped else f"{counts}; no language model was used: {skipped}."
