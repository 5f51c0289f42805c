"""The namespaces' indexes in memory: loaded on first use, told of every write, dropped when memory is short.

Loading goes on beside writes: what is committed meanwhile is kept for the namespace and applied when its load is done.
`apply`, `write_snapshots` and `shrink` run on the writer thread, one after another, so an index never changes under a
snapshot that is being written; searches go on.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from souvenir.errors import Unavailable
from souvenir.index.lexical import Bm25Constants
from souvenir.index.namespace import NamespaceIndex
from souvenir.index.snapshot import SnapshotFiles
from souvenir.types import FloatVector, IndexChange, Passage, PassageAdded, PassageRemoved, Profile

REBUILD_SHARE = 0.25
"""A write that removes more than this share of a namespace's rows makes its index be loaded anew: that is quicker."""

SNAPSHOT_MIN_CHANGES = 1_000
SNAPSHOT_CHANGED_SHARE = 0.05
"""While it runs, an index is written once this share of its rows changed: the disk is not written for nothing."""

log = structlog.get_logger(__name__)


class PassageView(Protocol):
    """One state of a namespace in the database."""

    @property
    def change_seq(self) -> int: ...

    def attributes(self) -> Sequence[tuple[int, int, int, str, int, int]]:
        """(id, owner_id, profile, source, occurred_at in microseconds, archived) of every passage."""

    def passages(self, ids: Iterable[int] | None) -> Iterable[tuple[Passage, FloatVector]]:
        """Those among `ids`, or all, in id order, with their vectors."""


OpenView = Callable[[int], AbstractContextManager[PassageView]]


@dataclass(slots=True)
class _Entry:
    """`index` is None while it loads; `pending` holds the writes committed meanwhile.

    `snapshot_seq` is the last write that the snapshot holds, `changed_rows` how many rows changed since.
    """

    loaded: threading.Event = field(default_factory=threading.Event)
    index: NamespaceIndex | None = None
    failure: BaseException | None = None
    pending: list[tuple[Sequence[IndexChange], int]] = field(default_factory=list)
    snapshot_seq: int = 0
    changed_rows: int = 0


class IndexRegistry:
    """Every loaded namespace, most recently used last."""

    def __init__(
        self,
        open_view: OpenView,
        snapshots: SnapshotFiles,
        analyse: Callable[[str], Sequence[str]],
        *,
        dim: int,
        constants: Mapping[Profile, Bm25Constants],
        max_bytes: int,
        on_load: Callable[[], None],
    ) -> None:
        self._open_view = open_view
        self._snapshots = snapshots
        self._analyse = analyse
        self._dim = dim
        self._constants = constants
        self._max_bytes = max_bytes
        self._on_load = on_load
        self._entries: OrderedDict[int, _Entry] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, namespace_id: int) -> NamespaceIndex:
        """The namespace's index, loaded by the first caller while the others wait.

        :raises Unavailable: If the caller that loaded it failed.
        """
        with self._lock:
            entry = self._entries.get(namespace_id)
            mine = entry is None
            if entry is None:
                entry = self._entries[namespace_id] = _Entry()
            self._entries.move_to_end(namespace_id)
        if mine:
            self._load(namespace_id, entry)
            self._on_load()
        entry.loaded.wait()
        if entry.index is None:
            raise Unavailable("The namespace's index could not be loaded; try again in a moment") from entry.failure
        return entry.index

    def loaded(self) -> dict[int, NamespaceIndex]:
        with self._lock:
            return {id_: entry.index for id_, entry in self._entries.items() if entry.index is not None}

    @property
    def over_budget(self) -> bool:
        indexes = self.loaded()
        return len(indexes) > 1 and sum(index.nbytes for index in indexes.values()) > self._max_bytes

    def apply(self, namespace_id: int, changes: Sequence[IndexChange], change_seq: int) -> None:
        """Bring a loaded namespace to the state of a committed write; one that cannot follow is loaded anew."""
        with self._lock:
            entry = self._entries.get(namespace_id)
            if entry is None:
                return
            if entry.index is None:
                entry.pending.append((changes, change_seq))
                return
        removals = sum(isinstance(change, PassageRemoved) for change in changes)
        if removals > max(SNAPSHOT_MIN_CHANGES, REBUILD_SHARE * len(entry.index)):
            self._drop(namespace_id, entry)
            return
        entry.changed_rows += len(changes)
        try:
            entry.index.apply(changes, change_seq)
        except Exception:  # the write stands; its index is made again from the database
            log.exception("index_update_failed", namespace_id=namespace_id, action="rebuilding on next use")
            self._drop(namespace_id, entry)

    def clear(self) -> None:
        """Forget everything, after the database was replaced."""
        with self._lock:
            self._entries.clear()

    def write_snapshots(self, *, all_changed: bool) -> None:
        """Write the indexes that changed since their snapshot; all of them, or those that changed much."""
        with self._lock:
            entries = [(id_, entry, entry.index) for id_, entry in self._entries.items() if entry.index is not None]
        for namespace_id, entry, index in entries:
            much = entry.changed_rows >= max(SNAPSHOT_MIN_CHANGES, SNAPSHOT_CHANGED_SHARE * len(index))
            if index.change_seq != entry.snapshot_seq and (much or all_changed):
                self._write(namespace_id, entry, index)

    def shrink(self) -> None:
        """Drop the least recently used indexes until the rest fit the budget; the last used stays."""
        while self.over_budget:
            with self._lock:
                namespace_id, entry = next((id_, e) for id_, e in self._entries.items() if e.index is not None)
            if entry.index is not None and entry.index.change_seq != entry.snapshot_seq:
                self._write(namespace_id, entry, entry.index)
            self._drop(namespace_id, entry)
            log.info("index_dropped", namespace_id=namespace_id)

    def _write(self, namespace_id: int, entry: _Entry, index: NamespaceIndex) -> None:
        try:
            self._snapshots.write(
                namespace_id,
                change_seq=index.change_seq,
                passage_ids=index.attributes.ids,
                vectors=index.vectors,
                lexical=index.lexical,
            )
        except (
            OSError,
            RuntimeError,
        ) as error:  # FAISS raises the latter; a full disk costs the next start some seconds
            log.warning("index_snapshot_failed", namespace_id=namespace_id, reason=str(error))
        else:
            entry.snapshot_seq, entry.changed_rows = index.change_seq, 0

    def _drop(self, namespace_id: int, entry: _Entry) -> None:
        with self._lock:
            if self._entries.get(namespace_id) is entry:
                del self._entries[namespace_id]

    def _load(self, namespace_id: int, entry: _Entry) -> None:
        try:
            index = self._build(namespace_id, entry)
            while True:
                with self._lock:
                    pending, entry.pending = entry.pending, []
                    if not pending:
                        entry.index = index
                        break
                for changes, change_seq in pending:
                    entry.changed_rows += len(changes)
                    index.apply(changes, change_seq)
        except BaseException as error:
            entry.failure = error
            self._drop(namespace_id, entry)
            raise
        finally:
            entry.loaded.set()

    def _build(self, namespace_id: int, entry: _Entry) -> NamespaceIndex:
        """The snapshot and what changed since, or everything from the stored passages and vectors."""
        with self._open_view(namespace_id) as view:
            change_seq = view.change_seq
            snapshot = self._snapshots.read(namespace_id, newest_seq=change_seq)
            if snapshot is None:
                index = NamespaceIndex(self._dim, self._constants)
                index.apply(self._added(view.passages(None)), change_seq)
                entry.changed_rows = len(index)
                return index
            entry.snapshot_seq = snapshot.change_seq
            index = NamespaceIndex(self._dim, self._constants, vectors=snapshot.vectors, lexical=snapshot.lexical)
            stored = {row[0]: row for row in view.attributes()}
            snapshot_ids = snapshot.passage_ids.tolist()
            index.attributes.extend([stored.get(id_, (id_, 0, 0, "", 0, 0)) for id_ in snapshot_ids])
            known = set(snapshot_ids)
            index.apply([PassageRemoved(id_) for id_ in known - stored.keys()], 0)
            missing = stored.keys() - known
            if missing:
                index.apply(self._added(view.passages(sorted(missing))), change_seq)
            entry.changed_rows = len(missing) + len(known - stored.keys())
            index.change_seq = change_seq
            return index

    def _added(self, passages: Iterable[tuple[Passage, FloatVector]]) -> Iterable[PassageAdded]:
        return (PassageAdded(passage, vector, self._analyse(passage.text)) for passage, vector in passages)
