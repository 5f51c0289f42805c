"""What a job may see and write: its own source, or the whole namespace if it was given none."""

from __future__ import annotations

from dataclasses import replace

from souvenir.store.extractions import Extraction
from souvenir.store.transaction import require_writable
from souvenir.types import Scope

NO_SOURCE = "extract"
"""Where facts are stored that were learned without a source."""


def source_of(extraction: Extraction) -> str:
    """Where its new memories are stored."""
    return extraction.source or NO_SOURCE


def reach_of(scope: Scope, extraction: Extraction) -> Scope:
    """A caller's scope, narrowed to what the job is about.

    :raises SourceForbidden: If the caller may not write to its source.
    """
    require_writable(scope, source_of(extraction))
    return replace(scope, sources=(extraction.source,)) if extraction.source else scope


def serial_key(namespace: str, source: str) -> str:
    """Jobs of one source run one after another, so that each sees what the one before has learned."""
    return f"{namespace}\n{source}"
