"""Folders: the first segments of sources, the tree below them, and renaming a folder with everything in it.

Renaming moves every memory of a folder, archived ones too, like any other change of a source: with a row of the
history, a new `updated_at` and without embedding anything. Keys and extraction profiles keep the old paths. A small
folder is renamed in one transaction, a large one in several, each with the progress of the job.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from souvenir.core.errors import FolderNotFound, InvalidRequest, KeyTaken, MemoryUnreadable
from souvenir.core.labels import MAX_SOURCE_CHARS, require_unreserved
from souvenir.core.stored_json import StoredJson
from souvenir.core.types import JsonObject, MemoryPatch, Scope, SourceFilter, SourceMatch
from souvenir.jobs.handler import Progress, RunningJob
from souvenir.memories.engine import MemoryEngine
from souvenir.store.memories import folders as rows
from souvenir.store.memories.folders import Folder, SourceNode
from souvenir.store.transaction import Transaction

MOVED_AT_ONCE = 256
"""Memories moved in one transaction of a job: other writes wait for some tens of milliseconds."""


@dataclass(frozen=True, slots=True)
class _State:
    """:param last: The id of the last memory that was processed. :param errors: Memories that could not be moved."""

    last: int = 0
    updated: int = 0
    errors: int = 0


_STATE = StoredJson(_State)


class FolderRenaming:
    """Runs the jobs of its kind. Thread-safe."""

    kind = "rename_folder"

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    def list(self, scope: Scope, *, include_archived: bool = False) -> Sequence[Folder]:
        """Return the folders of the visible memories, in the order of their names."""
        with self._engine.namespace(scope) as (connection, namespace):
            return (
                [] if namespace is None else rows.count_each(connection, namespace, include_archived=include_archived)
            )

    def below(
        self, scope: Scope, prefix: str, *, include_archived: bool, offset: int, limit: int
    ) -> tuple[Sequence[SourceNode], int]:
        """Return the nodes of the next level of the tree of sources, and their number on all pages.

        :param prefix: The beginning of the sources, up to and with its last slash; empty for the first level.
        """
        with self._engine.namespace(scope) as (connection, namespace):
            if namespace is None:
                return [], 0
            return rows.count_below(
                connection, namespace, prefix, include_archived=include_archived, offset=offset, limit=limit
            )

    def size(self, scope: Scope, old: str, new: str) -> int:
        """Return the number of memories that renaming would move.

        :raises FolderNotFound: If there are none.
        :raises InvalidRequest: If the names are equal, or one is reserved.
        """
        if old == new:
            raise InvalidRequest(f"{old!r} is the name of the folder already; give another new_name")
        require_unreserved(old)
        require_unreserved(new)
        count = self._engine.count(scope, _in(old))
        if not count:
            raise FolderNotFound(old)
        return count

    def run(self, job: RunningJob) -> JsonObject:
        old, new = job.parameters["old"], job.parameters["new"]
        return self.rename(job.scope, old, new, progress=job, at_once=MOVED_AT_ONCE, job_id=job.id)

    def rename(
        self, scope: Scope, old: str, new: str, *, progress: Progress, at_once: int, job_id: str | None = None
    ) -> JsonObject:
        """Move all memories in `old` to the same place in `new`, which may exist already; then both are one folder.

        A memory stays if another active one has its key in its new source, if its new source would be too long, or if
        it cannot be read.

        :param at_once: Maximum number of memories in one transaction.
        :return: The number of `updated` memories, and of `errors`: those that stayed.
        """
        state, total = _STATE.load(progress.state), self._engine.count(scope, _in(old))
        more = True
        while more:

            def work(tx: Transaction, state: _State = state) -> tuple[_State, bool]:
                tx.job_id = job_id
                found = rows.next_in(tx.connection, tx.namespace, old, after=state.last, limit=at_once)
                moved = sum(_is_moved(tx, one, new + source.removeprefix(old)) for one, source in found)
                after = replace(
                    state,
                    last=found[-1][0] if found else state.last,
                    updated=state.updated + moved,
                    errors=state.errors + len(found) - moved,
                )
                progress.save(tx.connection, done=after.updated + after.errors, total=total, state=_STATE.dump(after))
                return after, len(found) == at_once

            state, more = self._engine.write(scope, work)
        return {"updated": state.updated, "errors": state.errors}


def _in(folder: str) -> SourceFilter:
    return SourceFilter(folder, SourceMatch.PATH)


def _is_moved(tx: Transaction, memory_id: int, source: str) -> bool:
    """Move a memory; return False if it must stay, which is reported as one of the errors."""
    if len(source) > MAX_SOURCE_CHARS:
        return False
    try:
        tx.update(memory_id, MemoryPatch(source=source), ())
    except (KeyTaken, MemoryUnreadable):
        return False
    return True
