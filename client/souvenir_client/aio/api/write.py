"""Operations of the section `write`; made by `python -m scripts.build_client`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from souvenir_client.aio.transport import AsyncTransport
from souvenir_client.calls import NOT_SENT, Call, NotSent, Repeat, segment
from souvenir_client.records.enums import OnDuplicate
from souvenir_client.records.write import (
    AddBatchResponse,
    AddMemoryResponse,
    PatchMemoryResponse,
    UpsertBatchResponse,
    UpsertResponse,
)


class AsyncMemoriesOfWrite:
    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def add(
        self,
        *,
        text: str,
        source: str,
        idempotency_key: str | NotSent = NOT_SENT,
        metadata: Mapping[str, Any] | NotSent | None = NOT_SENT,
        tags: Sequence[str] | NotSent = NOT_SENT,
        facts: Sequence[str] | NotSent | None = NOT_SENT,
        deduplicate: bool | NotSent = NOT_SENT,
        on_duplicate: OnDuplicate | NotSent | None = NOT_SENT,
        split: bool | NotSent = NOT_SENT,
    ) -> AddMemoryResponse:
        """Store one memory; once it is answered it can be found, now and after a power cut. `POST /memory/add`."""
        return await self._transport.send(
            Call(
                "POST",
                "/memory/add",
                {200: AddMemoryResponse},
                headers={"Idempotency-Key": idempotency_key},
                body={
                    "text": text,
                    "source": source,
                    "metadata": metadata,
                    "tags": tags,
                    "facts": facts,
                    "deduplicate": deduplicate,
                    "on_duplicate": on_duplicate,
                    "split": split,
                },
                repeat=Repeat.KEYED,
            )
        )

    async def add_batch(
        self,
        *,
        memories: Sequence[Mapping[str, Any]],
        idempotency_key: str | NotSent = NOT_SENT,
        deduplicate: bool | NotSent = NOT_SENT,
    ) -> AddBatchResponse:
        """Store up to 500 memories in one transaction: all or none; they are not compared with each other.

        `POST /memory/add-batch`.
        """
        return await self._transport.send(
            Call(
                "POST",
                "/memory/add-batch",
                {200: AddBatchResponse},
                headers={"Idempotency-Key": idempotency_key},
                body={"memories": memories, "deduplicate": deduplicate},
                repeat=Repeat.KEYED,
            )
        )

    async def upsert(
        self,
        *,
        text: str,
        source: str,
        key: str,
        metadata: Mapping[str, Any] | NotSent | None = NOT_SENT,
        tags: Sequence[str] | NotSent = NOT_SENT,
        facts: Sequence[str] | NotSent | None = NOT_SENT,
    ) -> UpsertResponse:
        """Change the memory that has this source and key, or store a new one. `POST /memory/upsert`."""
        return await self._transport.send(
            Call(
                "POST",
                "/memory/upsert",
                {200: UpsertResponse},
                body={"text": text, "source": source, "metadata": metadata, "tags": tags, "facts": facts, "key": key},
                repeat=Repeat.SAFE,
            )
        )

    async def upsert_batch(self, *, memories: Sequence[Mapping[str, Any]]) -> UpsertBatchResponse:
        """Upsert up to 1000 memories in one transaction: all or none. `POST /memory/upsert-batch`."""
        return await self._transport.send(
            Call(
                "POST",
                "/memory/upsert-batch",
                {200: UpsertBatchResponse},
                body={"memories": memories},
                repeat=Repeat.SAFE,
            )
        )

    async def update(
        self,
        memory_id: int,
        *,
        text: str | NotSent | None = NOT_SENT,
        source: str | NotSent | None = NOT_SENT,
        metadata_patch: Mapping[str, Any] | NotSent | None = NOT_SENT,
        pinned: bool | NotSent | None = NOT_SENT,
        archived: bool | NotSent | None = NOT_SENT,
        tags: Sequence[str] | NotSent | None = NOT_SENT,
        add_tags: Sequence[str] | NotSent = NOT_SENT,
        remove_tags: Sequence[str] | NotSent = NOT_SENT,
        facts: Sequence[str] | NotSent | None = NOT_SENT,
    ) -> PatchMemoryResponse:
        """Change the fields that are given and leave the others as they are. `PATCH /memory/{memory_id}`."""
        return await self._transport.send(
            Call(
                "PATCH",
                f"/memory/{segment(memory_id)}",
                {200: PatchMemoryResponse},
                body={
                    "text": text,
                    "source": source,
                    "metadata_patch": metadata_patch,
                    "pinned": pinned,
                    "archived": archived,
                    "tags": tags,
                    "add_tags": add_tags,
                    "remove_tags": remove_tags,
                    "facts": facts,
                },
            )
        )
