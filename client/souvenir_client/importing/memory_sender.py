"""Send memories. A memory is identified by source and key, and an unchanged one is skipped.

The digest of the imported version is stored in its metadata (`import_digest`) and compared with the file. A memory that
was redacted or corrected since is therefore not overwritten by the same file, but by a file with a new version.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from souvenir_client.errors import ApiError
from souvenir_client.importing import storable
from souvenir_client.importing.batches import MAX_CHARS, MAX_RECORDS, send_all
from souvenir_client.importing.records import MemoryRecord, Skipped
from souvenir_client.importing.report import Tally
from souvenir_client.sync.client import Souvenir

DIGEST = "import_digest"


class MemorySender:
    """Sends the memories of one import to one namespace.

    :param below: A path that contains all sources; None if unknown.
    """

    def __init__(self, client: Souvenir, tally: Tally, below: str | None) -> None:
        self._client = client
        self._tally = tally
        self._below = below
        self._held: dict[tuple[str, str], str | None] | None = None
        self._seen: set[tuple[str, str]] = set()
        self._waiting: list[tuple[MemoryRecord, dict[str, Any]]] = []
        self._chars = 0

    def add(self, record: MemoryRecord) -> None:
        if self._held is None:
            self._held = self._stored()
        named = (record.source, record.key)
        body = _body(record)
        known = self._held.get(named, "")
        self._seen.add(named)
        if known == body["metadata"][DIGEST]:
            self._tally.memories.unchanged += 1
            return
        self._held[named] = body["metadata"][DIGEST]
        if any((waiting.source, waiting.key) == named for waiting, _ in self._waiting):
            self._flush()
        self._waiting.append((record, body))
        self._chars += len(record.text) + sum(map(len, record.facts))
        if len(self._waiting) >= MAX_RECORDS or self._chars >= MAX_CHARS:
            self._flush()

    def finish(self) -> None:
        self._flush()
        sources = {source for source, _ in self._seen}
        held = self._held or {}
        self._tally.gone += sum(
            known is not None and named[0] in sources and named not in self._seen for named, known in held.items()
        )

    def _stored(self) -> dict[tuple[str, str], str | None]:
        """The digest of each memory with a key, including archived ones; None for memories that were not imported."""
        held: dict[tuple[str, str], str | None] = {}
        active: set[tuple[str, str]] = set()
        query: dict[str, Any] = {"source": self._below, "source_boundary": True} if self._below else {}
        for line in self._client.transfer.export_memories(**query):
            if isinstance(line.get("key"), str):
                digest = (line.get("custom_fields") or {}).get(DIGEST)
                named = (str(line["source"]), line["key"])
                # Of several with one name, the one that is not archived counts, otherwise the newest, which comes last.
                if named not in active:
                    held[named] = digest if isinstance(digest, str) else None
                if line.get("archived") is False:
                    active.add(named)
        return held

    def _flush(self) -> None:
        waiting, self._waiting, self._chars = self._waiting, [], 0
        if waiting:
            send_all(waiting, self._send, self._refused)

    def _send(self, batch: Sequence[tuple[MemoryRecord, dict[str, Any]]]) -> None:
        answer = self._client.memories.upsert_batch(memories=[body for _, body in batch])
        self._tally.memories.imported += answer.created
        self._tally.memories.updated += answer.updated
        # An upsert does not change the state of a memory that exists.
        archived = [
            result.id
            for (record, _), result in zip(batch, answer.results, strict=True)
            if result.action == "updated" and record.metadata.get("archived") is True
        ]
        if archived:
            self._client.memories.archive_batch(ids=archived)

    def _refused(self, item: tuple[MemoryRecord, dict[str, Any]], error: ApiError) -> None:
        self._tally.note(Skipped(item[0].place, f"the service refused it: {error.detail}"))


def _body(record: MemoryRecord) -> dict[str, Any]:
    metadata = dict(record.metadata)
    if record.created_at is not None:
        metadata.setdefault("document_at", record.created_at)
    owned = {name: list(held) for name, held in (("tags", record.tags), ("facts", record.facts)) if held}
    said = storable.digest(record.text, metadata, *([owned] if owned else []))
    return {
        **owned,
        "text": record.text,
        "source": record.source,
        "key": record.key,
        "metadata": {**metadata, DIGEST: said},
    }
