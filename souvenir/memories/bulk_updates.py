"""One change of the labels and states of many memories: pinned, archived, source and tags, in one transaction.

A memory that the change leaves as it is gets no row in its history, so the ids that are returned are those whose change
can be taken back. Texts are changed one at a time, because each is embedded.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from souvenir.core.errors import InvalidRequest, KeyTaken, MemoryUnreadable, NothingToDo, SourceForbidden
from souvenir.core.labels import joined
from souvenir.core.types import Memory, MemoryPatch, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.memories import reads
from souvenir.store.transaction import Transaction, require_writable


@dataclass(frozen=True, slots=True)
class BulkOutcome:
    """:param updated_ids: Those that it made different. :param refused: By id, why a memory stayed as it was."""

    updated_ids: tuple[int, ...]
    missing_ids: tuple[int, ...]
    refused: Mapping[int, str]


def update_many(engine: MemoryEngine, scope: Scope, ids: Sequence[int], patch: MemoryPatch) -> BulkOutcome:
    """Change those of the memories that exist.

    :param patch: With `pinned`, `archived`, `source`, `add_tags` and `remove_tags` only.
    :raises NothingToDo: If the patch changes nothing.
    :raises SourceForbidden: If the scope may not write to the new source; nothing is changed.
    """
    if patch == MemoryPatch():
        raise NothingToDo("Nothing to update; give pinned, archived, source, add_tags or remove_tags")
    if patch.source is not None:
        require_writable(scope, patch.source)
    wanted = list(dict.fromkeys(ids))

    def work(tx: Transaction) -> BulkOutcome:
        visible = reads.visible_ids(tx.connection, tx.namespace, wanted)
        found = reads.as_stored(tx.connection, tx.namespace, visible)
        updated, refused = [], {}
        for memory_id in (one for one in wanted if one in visible):
            # One that cannot be read is visible but not found; its update says why.
            if memory_id in found and not _differs(found[memory_id], patch):
                continue
            try:
                tx.update(memory_id, patch, ())
                updated.append(memory_id)
            except (InvalidRequest, KeyTaken, MemoryUnreadable, SourceForbidden) as error:
                refused[memory_id] = error.message
        return BulkOutcome(tuple(updated), tuple(one for one in wanted if one not in visible), refused)

    return engine.write(scope, work)


def _differs(memory: Memory, patch: MemoryPatch) -> bool:
    return (
        patch.pinned not in (None, memory.pinned)
        or patch.archived not in (None, memory.archived)
        or patch.source not in (None, memory.source)
        or joined(memory.tags, patch.add_tags, patch.remove_tags) != memory.tags
    )
