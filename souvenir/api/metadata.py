"""Metadata of a memory in requests: bounded JSON, some keys of which set fields of the memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from souvenir.api.fields import moment, without_nul
from souvenir.core.labels import AUTHORSHIP, MAX_SOURCE_CHARS, ORIGIN, ORIGIN_CLIENT, client_named
from souvenir.core.types import MemoryDraft, OriginClass

MAX_METADATA_BYTES = 64 * 1024

OF_THE_RECORD = frozenset(
    {
        *("id", "text", "source", "timestamp", "created_at", "updated_at"),
        # Link fields of a record, which metadata must not forge.
        *("links", "supersedes", "superseded_by", "previous_text", "is_latest", "conflicts_with"),
        "valid_to",
    }
)
"""Names in a record that no metadata can have."""

FROM_THE_SERVICE = OF_THE_RECORD | AUTHORSHIP | ORIGIN | {"source_memory_ids"}
"""Keys that a caller cannot set; dropped in silence, as clients send whole records back."""


def _readable_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    try:
        size = len(json.dumps(metadata, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError("metadata must be finite JSON in Unicode") from error
    if size > MAX_METADATA_BYTES:
        raise ValueError(f"metadata takes at most {MAX_METADATA_BYTES} bytes of JSON")
    for text in _texts(metadata):
        without_nul(text)
    return metadata


def _readable_fields(metadata: dict[str, Any]) -> dict[str, Any]:
    """Metadata whose keys that are fields of the memory can be read as such."""
    match metadata.get("document_at"):
        case None | "":
            pass
        case str(text):
            moment(text)
        case _:
            raise ValueError("document_at takes an ISO-8601 text")
    for name in ("pinned", "archived"):
        if not isinstance(metadata.get(name), bool | None):
            raise ValueError(f"{name} takes true or false")
    match metadata.get("entity_key"):
        case None:
            pass
        case str(key) if 1 <= len(key) <= MAX_SOURCE_CHARS:
            pass
        case _:
            raise ValueError(f"entity_key takes a text of 1 to {MAX_SOURCE_CHARS} characters")
    if metadata.get("origin_class") not in (None, *OriginClass):
        raise ValueError(f"origin_class takes one of {', '.join(OriginClass)}")
    return metadata


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str(text):
            yield text
        case dict():
            for key, held in value.items():
                yield key
                yield from _texts(held)
        case list():
            for held in value:
                yield from _texts(held)


MetadataFilter = Annotated[dict[str, Any], Field(max_length=20), AfterValidator(_readable_metadata)]

PlainMetadata = Annotated[
    dict[str, Any],
    AfterValidator(_readable_metadata),
    Field(description=f"Any JSON object of at most {MAX_METADATA_BYTES} bytes."),
]
"""For resources whose metadata contains no fields of their own."""

Metadata = Annotated[
    dict[str, Any],
    AfterValidator(_readable_metadata),
    AfterValidator(_readable_fields),
    Field(
        description="Any JSON object of at most 64 KiB. `document_at` (ISO-8601) is the date of the content; "
        "`pinned`, `archived` and `entity_key` set the fields of the memory; `origin_class` (`user`, "
        "`document`, `tool`, `assistant`, `inferred`, `recalled`) is the origin of the text and can "
        "only lower the trust of a memory. Names that the service writes are dropped.",
        examples=[{"category": "decision", "document_at": "2023-05-08"}],
    ),
]


@dataclass(frozen=True, slots=True)
class MemoryFields:
    """A caller's metadata, and the fields of the memory that it sets."""

    metadata: dict[str, Any]
    document_at: datetime | None
    pinned: bool | None
    archived: bool | None
    key: str | None
    origin_class: OriginClass | None

    def draft(self, text: str, source: str, more: Mapping[str, Any] = MappingProxyType({})) -> MemoryDraft:
        """Return a new memory with these fields and more metadata."""
        return MemoryDraft(
            text=text,
            source=source,
            metadata={**self.metadata, **more},
            key=self.key,
            document_at=self.document_at,
            pinned=bool(self.pinned),
            archived=bool(self.archived),
            origin_class=self.origin_class or OriginClass.USER,
        )


def read_fields(metadata: Mapping[str, Any] | None) -> MemoryFields:
    """Extract the memory's own fields from validated metadata, and drop fields that a caller cannot set."""
    kept = {name: value for name, value in (metadata or {}).items() if name not in FROM_THE_SERVICE}
    document_at = kept.pop("document_at", None)
    if ORIGIN_CLIENT in kept:
        kept[ORIGIN_CLIENT] = client_named(kept[ORIGIN_CLIENT])
    return MemoryFields(
        document_at=moment(document_at) if document_at else None,
        pinned=kept.pop("pinned", None),
        archived=kept.pop("archived", None),
        key=kept.pop("entity_key", None),
        origin_class=None if (named := kept.pop("origin_class", None)) is None else OriginClass(named),
        metadata=kept,
    )


def read_change(metadata: Mapping[str, Any]) -> MemoryFields:
    """Like `read_fields`, for a change of a memory, which cannot set everything that a new one can."""
    return read_fields({name: value for name, value in metadata.items() if not name.startswith("_policy_")})
