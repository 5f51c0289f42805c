"""The namespaces' in-memory indexes, one per kind of passages: loaded lazily, dropped when memory is short.

Loading is concurrent with writes: commits during a load are kept for the namespace and applied at its end. All changes
of indexes and snapshots run on the writer thread, one after another, so an index never changes while its snapshot is
written; searches continue.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from copy import copy

import structlog

from souvenir.core.array_file import ArrayFile
from souvenir.core.errors import DatabaseUnavailable, Unavailable
from souvenir.core.passages import (
    CommitId,
    Embedding,
    IndexChange,
    Passage,
    PassageAdded,
    PassageRemoved,
    TokensAdded,
    kind_of,
)
from souvenir.core.types import PassageKind, Profile
from souvenir.index.cross_check import SAMPLED_AT_LOAD, sample_of, sampled_problems
from souvenir.index.index_entry import IndexEntry
from souvenir.index.index_key import IndexKey
from souvenir.index.namespace import NamespaceIndex
from souvenir.index.passage_view import Analyse, PassageView, differing_ids
from souvenir.index.passage_words import WordRules
from souvenir.index.snapshot import UNWRITABLE, Includes, SnapshotFiles, State, namespace_in

REBUILD_SHARE = 0.25
"""Changes that remove more than this share of a namespace's rows drop its index, since building it is faster."""

SNAPSHOT_MIN_CHANGES = 1_000
SNAPSHOT_CHANGED_SHARE = 0.05
"""A running service writes the snapshot of an index once this share of its rows has changed, to limit disk writes."""

SNAPSHOT_EXCESS = 0.1
"""Beyond the memory budget by more than this share, small indexes are dropped without a snapshot."""

DROPPED_AT_ONCE = 32

log = structlog.get_logger(__name__)


OpenView = Callable[[IndexKey], AbstractContextManager[PassageView]]


class IndexRegistry:
    """Every loaded index, most recently used last.

    `keeps_snapshots` is False while another registry is responsible for the files of the snapshots.
    """

    def __init__(
        self,
        open_view: OpenView,
        snapshots: SnapshotFiles,
        analyse: Analyse,
        *,
        dim: int,
        token_space: str | None,
        rules: Mapping[Profile, WordRules],
        max_bytes: int,
        committed: Callable[[], CommitId],
        on_load: Callable[[], None],
        follows: bool = False,
    ) -> None:
        """:param committed: Returns the last commit; called on the writer thread, where all indexes have that state.

        :param follows: Whether other processes write too: indexes then change only by catching up with the database.
        """
        self._open_view = open_view
        self._snapshots = snapshots
        self._analyse = analyse
        self._dim = dim
        self._token_space = token_space
        self._rules = rules
        self._max_bytes = max_bytes
        self._committed = committed
        self._on_load = on_load
        self._follows = follows
        self.keeps_snapshots = True
        self._entries: OrderedDict[IndexKey, IndexEntry] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: IndexKey, change_seq: int) -> NamespaceIndex:
        """Return an index, loaded by the first caller while the others wait.

        :param change_seq: The namespace's last write as the caller read it: an index that follows others has it too.
        :raises Unavailable: If the caller that loaded it failed.
        """
        while True:
            with self._lock:
                entry = self._entries.get(key)
                mine = entry is None
                if entry is None:
                    entry = self._entries[key] = IndexEntry()
                self._entries.move_to_end(key)
            if mine:
                self._load(key, entry)
                self._on_load()
            entry.loaded.wait()
            index = entry.index
            if index is None:
                if isinstance(entry.failure, DatabaseUnavailable):
                    raise copy(entry.failure) from entry.failure
                raise Unavailable("The namespace's index could not be loaded; try again in a moment") from entry.failure
            if not self._follows or self._has(key, entry, index, change_seq):
                return index

    def _has(self, key: IndexKey, entry: IndexEntry, index: NamespaceIndex, change_seq: int) -> bool:
        """Let an index catch up if it lacks a write; return False, after dropping it, if it has to be loaded again."""
        if index.change_seq >= change_seq:
            return True
        with entry.following:
            if index.change_seq >= change_seq:
                return True
            with self._open_view(key) as view:
                return self._followed(key, entry, index, view)

    def _followed(self, key: IndexKey, entry: IndexEntry, index: NamespaceIndex, view: PassageView) -> bool:
        """Let an index catch up with a view; return False, after dropping it, if it has to be loaded again."""
        if index.change_seq >= view.change_seq or self._catch_up(key, entry, index, view):
            return True
        self._drop(key, entry)
        return False

    def follow(self, change_seqs: Mapping[int, int]) -> None:
        """Let the loaded indexes of these namespaces catch up with their last writes."""
        with self._lock:
            loaded = [(key, entry, entry.index) for key, entry in self._entries.items() if entry.index is not None]
        for key, entry, index in loaded:
            self._has(key, entry, index, change_seqs.get(key.namespace_id, 0))

    @contextmanager
    def standing_at(self, key: IndexKey, view: PassageView) -> Iterator[NamespaceIndex | None]:
        """Yield a loaded index, which does not change meanwhile and has the state of a view, or None.

        Only an index that follows other processes can have another state; the others must not be written to meanwhile.
        """
        with self._lock:
            entry = self._entries.get(key)
        if entry is None or entry.index is None:
            yield None
            return
        if not self._follows:
            yield entry.index
            return
        with entry.following:
            followed = self._followed(key, entry, entry.index, view)
            yield entry.index if followed and entry.index.change_seq == view.change_seq else None

    def loaded(self) -> dict[IndexKey, NamespaceIndex]:
        with self._lock:
            return {key: entry.index for key, entry in self._entries.items() if entry.index is not None}

    def detached(self, key: IndexKey, passages: Iterable[PassageAdded], owner_ids: Sequence[int]) -> NamespaceIndex:
        """Return an index, for one search, of passages that are not stored, and of the stored ones of some owners."""
        index = self._empty()
        with self._open_view(key) as view:
            index.apply([*passages, *self._added(view.passages_of(owner_ids))], 0)
        return index

    def _empty(self) -> NamespaceIndex:
        return NamespaceIndex(self._dim, self._rules, self._analyse.terms, token_space=self._token_space)

    @property
    def over_budget(self) -> bool:
        return self._excess(self.loaded()) > 0

    def _excess(self, indexes: Mapping[IndexKey, NamespaceIndex]) -> int:
        """Bytes beyond the memory budget; a single index has none."""
        return sum(index.nbytes for index in indexes.values()) - self._max_bytes if len(indexes) > 1 else 0

    def apply(self, namespace_id: int, changes: Sequence[IndexChange], change_seq: int) -> None:
        """Apply a write to a namespace's loaded indexes; one that fails is dropped and reloaded on the next use."""
        for kind in PassageKind:
            of_kind = [change for change in changes if kind_of(change) is kind]
            self._apply(IndexKey(namespace_id, kind), of_kind, change_seq)

    def _apply(self, key: IndexKey, changes: Sequence[IndexChange], change_seq: int) -> None:
        with self._lock:
            entry = self._entries.get(key)
            if entry is None:
                return
            if entry.index is None:
                entry.pending.append((changes, change_seq))
                return
        if not self._follows:
            self._apply_next(key, entry, entry.index, changes, change_seq)
            return
        with entry.following:
            is_next = entry.index.change_seq == change_seq - 1
            if is_next:
                self._apply_next(key, entry, entry.index, changes, change_seq)
        if not is_next:
            self._has(key, entry, entry.index, change_seq)

    def _apply_next(
        self,
        key: IndexKey,
        entry: IndexEntry,
        index: NamespaceIndex,
        changes: Sequence[IndexChange],
        change_seq: int,
    ) -> None:
        """Apply the write that comes next for an index."""
        removals = sum(isinstance(change, PassageRemoved) for change in changes)
        if _are_many(removals, index):
            self._drop(key, entry)
            return
        entry.changed_rows += len(changes)
        try:
            index.apply(changes, change_seq)
        except Exception:  # the write is durable; the index is rebuilt from the database
            log.exception("index_update_failed", **key.labels, action="rebuilding on next use")
            self._drop(key, entry)

    def forget(self, namespace_id: int) -> None:
        """Drop the indexes of a deleted namespace, including those being loaded, and remove their snapshots."""
        keys = [IndexKey(namespace_id, kind) for kind in PassageKind]
        with self._lock:
            for key in keys:
                self._entries.pop(key, None)
        try:
            for key in keys:
                self._snapshots.remove(key.snapshot_name)
        except OSError as error:  # `sweep_snapshots` tries it again
            self._snapshots.warn(UNWRITABLE, error)

    def sweep_snapshots(self, known: Container[int], changed: Container[int], includes: Includes) -> bool:
        """Remove the snapshots of unknown namespaces, kinds and histories, and those that must be written again.

        :param known: The existing namespaces. :param changed: Those whose old snapshots must not be kept.
        :return: False, with a warning, if the folder does not allow it.
        """
        try:
            for name in self._snapshots.names():
                namespace_id = namespace_in(name)
                is_used = name in {IndexKey(namespace_id, kind).snapshot_name for kind in PassageKind}
                if not is_used or namespace_id not in known or namespace_id in changed:
                    self._snapshots.remove(name)
                else:
                    self._snapshots.remove_unusable(name, includes)
        except OSError as error:
            self._snapshots.warn(UNWRITABLE, error)
            return False
        with self._lock:
            for key in [key for key in self._entries if self._follows and key.namespace_id not in known]:
                del self._entries[key]
            entries = [entry for key, entry in self._entries.items() if key.namespace_id in changed]
        for entry in entries:
            entry.changed_rows = max(entry.changed_rows, 0 if entry.index is None else len(entry.index))
        return True

    def namespaces_of_snapshots(self, before: float) -> set[int]:
        """Return the namespaces with snapshots from before a time, in seconds since 1970.

        :raises OSError: If the folder cannot be read.
        """
        return {namespace_in(name) for name in self._snapshots.names(before)}

    def write_snapshots(self, *, all_changed: bool) -> None:
        """Write the indexes that changed since their snapshot: all of them, or those with many changes."""
        with self._lock:
            entries = [(key, entry, entry.index) for key, entry in self._entries.items() if entry.index is not None]
        tried = False
        for key, entry, index in entries:
            much = entry.changed_rows >= max(SNAPSHOT_MIN_CHANGES, SNAPSHOT_CHANGED_SHARE * len(index))
            if entry.changed_rows and (much or all_changed):
                self._write(key, entry, index)
                tried = True
        if not tried:
            self._snapshots.check_access()

    def suspicions(self, key: IndexKey, view: PassageView) -> list[int] | None:
        """Compare a sample of a loaded index, and its size, with the database, while writes go on.

        :return: The ids of the sample if there is a difference, which may come from a write; None otherwise.
        """
        with self._lock:
            entry = self._entries.get(key)
        if entry is None or entry.index is None:
            return None
        file, entry.unchecked = entry.unchecked, None
        if file is not None:
            entry.damage = file.damage()
        with self.standing_at(key, view) as index:
            if index is None:
                return None
            with index.lock.read():
                ids = sample_of(index.attributes.ids)
            return ids if self._problems(entry, index, ids, view) else None

    def verify(self, key: IndexKey, ids: Sequence[int], view: PassageView) -> None:
        """Compare passages of a loaded index, and its size; one that disagrees is rebuilt on the next use.

        On the writer thread only.
        """
        with self._lock:
            entry = self._entries.get(key)
        if entry is None or entry.index is None:
            return
        with self.standing_at(key, view) as index:
            held = [id_ for id_ in ids if index is not None and index.attributes.row_of(id_) is not None]
            wrong = [] if index is None else self._problems(entry, index, held, view)
        if wrong:
            self._drop(key, entry)
            self._reject(key, view, wrong)

    def settle(self, key: IndexKey, view: PassageView) -> bool:
        """Add what a loaded index lacks, such as passages that were embedded after it was loaded; on the writer thread.

        :return: False if the index has another state than the view.
        """
        with self._lock:
            entry = self._entries.get(key)
        if entry is None or entry.index is None:
            return True
        with self.standing_at(key, view) as index:
            if index is None:
                return False
            missing, surplus = differing_ids(index, view)
            if surplus:
                return False
            index.apply(self._added(view.passages(sorted(missing))), view.change_seq)
            entry.changed_rows += len(missing)
            entry.left_out = view.count() - len(index)
            return True

    def drop(self, *keys: IndexKey) -> None:
        """Let indexes be loaded again on their next use."""
        with self._lock:
            for key in keys:
                self._entries.pop(key, None)

    def _problems(self, entry: IndexEntry, index: NamespaceIndex, ids: Sequence[int], view: PassageView) -> list[str]:
        if entry.damage is not None:
            return [entry.damage]
        found = self._sampled_problems(index, ids, view)
        stored, indexed = view.count() - entry.left_out, len(index)
        return [*found, f"{stored} passages stored, {indexed} indexed"] if stored != indexed else found

    def _sampled_problems(self, index: NamespaceIndex, ids: Sequence[int], view: PassageView) -> list[str]:
        try:
            return sampled_problems(index, ids, view, self._analyse.chunks)
        except Unavailable as error:  # the file of its snapshot cannot be read any more
            return [error.message]

    def shrink(self) -> None:
        """Drop the least recently used indexes until the rest fit the budget; the most recently used one is kept.

        If they are loaded faster than snapshots are written, small ones are dropped without: they are soon built again.
        """
        while (excess := self._excess(self.loaded())) > 0:
            for _ in range(DROPPED_AT_ONCE):
                with self._lock:
                    loaded = [(e, key, e.index) for key, e in self._entries.items() if e.index is not None]
                if excess <= 0 or len(loaded) < 2:
                    break
                entry, key, index = loaded[0]
                excess -= index.nbytes
                in_time = excess <= SNAPSHOT_EXCESS * self._max_bytes
                if entry.changed_rows and (in_time or len(index) > SNAPSHOT_MIN_CHANGES):
                    self._write(key, entry, index)
                self._drop(key, entry)
                log.info("index_dropped", **key.labels)

    def _write(self, key: IndexKey, entry: IndexEntry, index: NamespaceIndex) -> None:
        """Write a snapshot; without it, the next start takes longer."""
        if self._follows:
            # Without what others erased meanwhile.
            with self._open_view(key) as view:
                change_seq = view.change_seq
            if not self._has(key, entry, index, change_seq):
                return
        with entry.following:
            index.vectors.make_coarse_scan()
            state = State(self._committed(), index.change_seq)
            written = self._snapshots.write(key.snapshot_name, state, index.to_arrays())
            if written is None:
                return
            entry.changed_rows, entry.unchecked = 0, None
            if written.is_large:
                index.rebase(written)

    def _drop(self, key: IndexKey, entry: IndexEntry) -> None:
        with self._lock:
            if self._entries.get(key) is entry:
                del self._entries[key]

    def _load(self, key: IndexKey, entry: IndexEntry) -> None:
        try:
            index = self._build(key, entry)
            while True:
                with self._lock:
                    pending, entry.pending = entry.pending, []
                    if not pending:
                        entry.index = index
                        break
                for changes, change_seq in () if self._follows else pending:
                    entry.changed_rows += len(changes)
                    index.apply(changes, change_seq)
        except BaseException as error:
            entry.failure = error
            self._drop(key, entry)
            raise
        finally:
            entry.loaded.set()

    def _build(self, key: IndexKey, entry: IndexEntry) -> NamespaceIndex:
        """Build an index from its snapshot and later changes, or from all stored passages and vectors."""
        with self._open_view(key) as view:
            index = self._of_snapshot(key, entry, view) if self.keeps_snapshots else None
            if index is None:
                index = self._empty()
                index.apply(self._added(view.passages(None)), view.change_seq)
                entry.changed_rows = len(index)
            entry.left_out = view.count() - len(index)
            return index

    def _of_snapshot(self, key: IndexKey, entry: IndexEntry, view: PassageView) -> NamespaceIndex | None:
        """Return the index of a snapshot with later changes; None, after its removal, if a sample disagrees."""

        def load(state: State, file: ArrayFile) -> NamespaceIndex:
            index = NamespaceIndex(
                self._dim, self._rules, self._analyse.terms, token_space=self._token_space, arrays=file
            )
            index.change_seq = state.change_seq
            entry.unchecked = file if file.is_large else None
            return index

        index = self._snapshots.read(key.snapshot_name, view.includes, load)
        if index is None:
            return None
        sampled = sample_of(index.attributes.ids, SAMPLED_AT_LOAD)
        if not self._catch_up(key, entry, index, view):
            return None
        wrong = self._sampled_problems(index, [id_ for id_ in sampled if index.has(id_)], view)
        missing, surplus = differing_ids(index, view)
        wrong += [f"passage {id_} is not stored" for id_ in surplus]
        if wrong:
            self._reject(key, view, wrong)
            return None
        index.apply(self._added(view.passages(sorted(missing))), view.change_seq)
        entry.changed_rows += len(missing)
        return index

    def _catch_up(self, key: IndexKey, entry: IndexEntry, index: NamespaceIndex, view: PassageView) -> bool:
        """Apply the writes that an index lacks; return False, without a change, if it has to be built again."""
        touched = view.changes_since(index.change_seq)
        if touched is None:
            log.info("index_too_old", **key.labels, action="rebuilding")
            return False
        if not touched.passage_ids and not touched.owner_ids:
            index.apply((), view.change_seq)
            return True
        changes: list[IndexChange] = []
        held = {id_ for id_ in touched.passage_ids if index.has(id_)}
        for passage, embedding in view.passages(sorted(touched.passage_ids)):
            if passage.id not in held:
                changes.append(PassageAdded(passage, embedding, self._analyse.chunks(passage)))
                continue
            held.remove(passage.id)
            if embedding.tokens is not None:
                changes.append(TokensAdded(passage.id, key.kind, embedding.tokens))
        if _are_many(len(held), index):
            return False
        # Removals come last, so that a search between two batches finds every owner.
        changes += [*view.owners(touched.owner_ids), *(PassageRemoved(id_, key.kind) for id_ in sorted(held))]
        index.apply(changes, view.change_seq)
        entry.changed_rows += len(changes)
        return True

    def _reject(self, key: IndexKey, view: PassageView, wrong: Sequence[str]) -> None:
        """Remove the snapshot of an index that disagrees with the database, and warn."""
        more = f" and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        self._snapshots.reject(
            key.snapshot_name,
            f"The {key.kind} index of the namespace {view.namespace!r} disagreed with the database ({wrong[0]}{more}), "
            "so it is built from the database again. The database was not changed; run `python app.py check` while "
            "the service is stopped, and look at the disk and at the system's log",
        )

    def _added(self, passages: Iterable[tuple[Passage, Embedding]]) -> Iterable[PassageAdded]:
        return (PassageAdded(passage, embedding, self._analyse.chunks(passage)) for passage, embedding in passages)


def _are_many(removals: int, index: NamespaceIndex) -> bool:
    """Return whether building an index again is faster than removing so many rows."""
    return removals > max(SNAPSHOT_MIN_CHANGES, REBUILD_SHARE * len(index))
