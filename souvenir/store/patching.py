"""What a patch makes of a memory's metadata."""

from __future__ import annotations

from souvenir.notes import joined_notes, without_notes
from souvenir.types import JsonObject, MemoryPatch


def metadata_after(metadata: JsonObject, patch: MemoryPatch) -> JsonObject:
    """A new text has notes of its own; new facts add to those of the text that stays."""
    said = patch.metadata or {}
    merged = {**(metadata if patch.text is None else without_notes(metadata)), **said}
    patched = {key: value for key, value in merged.items() if value is not None or key not in said}
    if patch.text is None and patch.facts is not None:
        return {**patched, **joined_notes(metadata, said)}
    return patched
