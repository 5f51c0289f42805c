"""Sends lines of our own exports to the service's import, which keeps times, keys and links.

The service's import stores every line as new, and its other strategy also skips lines that are only similar. Lines that
are already stored are therefore skipped here: memories with the same source, key, text and time, with the same id and
time (the text may have been corrected since), or imported from the same one. The other lines are collected in a file,
because they are sent as one stream.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Any

from souvenir_client.decoding import decode
from souvenir_client.errors import ServerFailed, TimedOut
from souvenir_client.importing import storable
from souvenir_client.importing.exports import IMPORT_ID
from souvenir_client.importing.records import ExportedLine, Skipped
from souvenir_client.importing.report import Tally
from souvenir_client.records.common import JobAccepted
from souvenir_client.records.transfer import ImportResponse
from souvenir_client.sync.client import Souvenir

CHUNK_BYTES = 256 * 1024
WAIT_S = 5.0
POLL_S = 0.5
STALLED_S = 600.0
"""Maximum time without progress of the job; after it the wait ends, but the job continues."""

FAILED = ("failed", "cancelled")
NO_REASON = "the service gave no reason"


class ExportSender:
    """Sends the lines of one import into one namespace.

    :param file: An empty file, which collects the lines to send.
    :param stepped: Called when the service's job has advanced.
    """

    def __init__(self, client: Souvenir, tally: Tally, file: IO[bytes], stepped: Callable[[], None]) -> None:
        self._client = client
        self._tally = tally
        self._stepped = stepped
        self._held: set[str] | None = None
        self._file = file
        self._numbers: list[int] = []
        self._memories = 0

    def add(self, line: ExportedLine) -> None:
        if self._held is None:
            stored = self._client.transfer.export_memories()
            self._held = {name for held in stored for name in _names_of_stored(held)}
        if line.said.get("_header") is not True:
            if not self._held.isdisjoint(_names(line.said)):
                self._tally.memories.unchanged += 1
                return
            self._memories += 1
        self._file.write(json.dumps(line.said, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
        self._numbers.append(line.number)

    def finish(self) -> None:
        """Send the lines and wait for the job.

        :raises ServerFailed: If the service's job failed.
        :raises TimedOut: If it stalls; it may continue later.
        """
        if not self._memories:
            return
        self._file.seek(0)
        answer = self._client.transfer.import_memories(self._chunks(), strategy="add", wait_s=WAIT_S)
        self._count(self._waited(answer) if isinstance(answer, JobAccepted) else answer)

    def _chunks(self) -> Iterator[bytes]:
        while chunk := self._file.read(CHUNK_BYTES):
            yield chunk

    def _waited(self, accepted: JobAccepted) -> ImportResponse:
        done, since = -1, time.monotonic()
        while True:
            job = self._client.jobs.get(accepted.job_id)
            if job.status == "completed" and job.result is not None:
                return decode(ImportResponse, dict(job.result))
            if job.status in FAILED:
                raise ServerFailed(500, "job_failed", job.error or f"the job {job.id} was {job.status}")
            if job.done != done:
                done, since = job.done, time.monotonic()
                self._stepped()
            if time.monotonic() - since > STALLED_S:
                raise TimedOut(self._client.server_url, STALLED_S)
            time.sleep(POLL_S)

    def _count(self, answer: ImportResponse) -> None:
        tally = self._tally
        tally.memories.imported += answer.imported
        tally.links += answer.links
        tally.links_dropped += answer.links_dropped
        tally.backup = answer.backup
        for error in answer.errors:
            place = f"line {self._numbers[error.line - 1]}"
            tally.note(Skipped(place, f"the service refused it: {error.error}"))
        if unnamed := answer.error_count - len(answer.errors):
            tally.note(Skipped("other lines", NO_REASON), unnamed)


def _names(line: Mapping[str, Any]) -> Iterator[str]:
    """Yield the identities of a line's memory: its content with its time, and its id."""
    source, at = line.get("source"), storable.timestamp_of(line.get("created_at"))
    yield storable.digest("text", source, line.get("key"), storable.text_of(line.get("text")), at)
    if at is not None and line.get("id") is not None:
        yield storable.digest("id", source, line["id"], at)
    held = line.get("custom_fields")
    if isinstance(held, Mapping) and isinstance(held.get(IMPORT_ID), str):
        yield storable.digest(IMPORT_ID, source, held[IMPORT_ID])


def _names_of_stored(line: Mapping[str, Any]) -> Iterator[str]:
    """Yield also the identity for lines without a time."""
    yield from _names(line)
    yield from _names({**line, "created_at": None})
