"""Documents: files that an agent keeps below `/memories`, each of them a memory.

A document has the source of its path and the key `DOCUMENT_KEY`. Search, history, events, export, erasure and backups
treat it like any memory; a search for duplicates and learning do not change it. A folder exists while a document is
below it. No file is a folder: each write checks that in its transaction, and memories of the namespace are written one
after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from souvenir.conversations.agents import ensure_agent
from souvenir.conversations.document_paths import ROOT, DocumentPath
from souvenir.core.concurrency import frees_space
from souvenir.core.errors import Conflict, InvalidRequest, MemoryChanged, NotFound
from souvenir.core.labels import DOCUMENT_KEY, PROTECTED
from souvenir.core.text import is_blank
from souvenir.core.timestamps import utc_now
from souvenir.core.types import Memory, MemoryDraft, MemoryPatch, OriginClass, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.idempotency import Once, do_once, made_before
from souvenir.store.memories import documents, reads
from souvenir.store.memories.documents import DocumentRow
from souvenir.store.transaction import Transaction

MAX_DOCUMENT_CHARS = 50_000

ATTEMPTS = 3
"""How often an edit is made when others change the document at the same time."""

_LINE, _REDACTED = "line ", "redacted"


@dataclass(frozen=True, slots=True)
class Edit:
    """A new text of a document.

    :param line: Number of the line where it differs from the old one, counted from 1.
    :param redacted: Whether the privacy policy changed the new text before it was stored.
    """

    text: str
    line: int = 1
    redacted: bool = False

    def kept(self, memory_id: int) -> list[str]:
        """Return what an Idempotency-Key keeps, without any content."""
        return [str(memory_id), f"{_LINE}{self.line}", *([_REDACTED] if self.redacted else [])]


class Documents:
    """The scope's namespace is the agent, which the first document creates if necessary.

    Every method raises `InvalidRequest`, `NotFound` or `Conflict` with a sentence for the model that asked.
    """

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    def find(self, scope: Scope, path: DocumentPath) -> Memory | None:
        """Return a document; None if there is no file at the path.

        :raises MemoryUnreadable: If it is damaged.
        """
        with self._engine.namespace(scope) as (connection, namespace):
            if namespace is None:
                return None
            held = reads.keyed_memory_id(connection, namespace.id, path.source, DOCUMENT_KEY)
            if held is None:
                return None
            return reads.required(connection, namespace, reads.memories(connection, namespace, [held]), held)

    def below(self, scope: Scope, folder: DocumentPath) -> dict[DocumentPath, int]:
        """Return the documents below a folder, each with its size in bytes."""
        with self._engine.namespace(scope) as (connection, namespace):
            rows = [] if namespace is None else documents.at_or_below(connection, namespace, folder.source)
        found = {path: row.size for row in rows if (path := DocumentPath.of_source(row.source)) is not None}
        return {path: size for path, size in found.items() if folder.contains(path)}

    def create(self, scope: Scope, path: DocumentPath, text: str, *, once: Once | None = None) -> Edit:
        """Store a text at a path, replacing the document there."""
        _require_storable(text)
        draft = MemoryDraft(text, path.source, {PROTECTED: True}, DOCUMENT_KEY, origin_class=OriginClass.ASSISTANT)
        draft = self._engine.screening.draft(scope, draft)
        [passages] = self._engine.prepare([draft.text])
        made = Edit(draft.text, redacted=draft.text != text)

        def work(tx: Transaction) -> Edit:
            def store() -> int:
                ensure_agent(tx)
                _require_free_for_file(tx, path)
                return tx.upsert(draft, passages).id

            do_once(tx, once, store, ids=made.kept, again=lambda ids: int(ids[0]))
            return made

        return self._engine.write(scope, work)

    def edit(
        self, scope: Scope, path: DocumentPath, change: Callable[[str], Edit], *, once: Once | None = None
    ) -> Edit:
        """Store what `change` makes of a document, unless another write changed it meanwhile: then begin again.

        :param change: Is called with the text of each attempt.
        """
        for _ in range(ATTEMPTS):
            if (before := self._edited_before(scope, once)) is not None:
                return before
            memory = self._required(scope, path)
            edit = change(memory.text)
            _require_storable(edit.text)
            try:
                return self._replace(scope, path, memory, edit, once)
            except MemoryChanged:
                continue
        raise Conflict(f"The file {path} is being changed by others; view it and send the command again")

    @frees_space()
    def delete(self, scope: Scope, path: DocumentPath, *, once: Once | None = None) -> None:
        """Delete a document, or all documents of a folder in one transaction."""
        _require_below_root(path, "delete")

        def work(tx: Transaction) -> None:
            def remove() -> Sequence[int]:
                rows = _required_rows(tx, path)
                if pinned := [file for file, row in rows.items() if row.pinned]:
                    raise Conflict(f"The file {pinned[0]} is pinned; keep it, or ask its owner to unpin it")
                tx.delete([row.id for row in rows.values()])
                return ()

            do_once(tx, once, remove, ids=lambda _: [], again=lambda _: ())

        self._engine.write(scope, work)

    def rename(self, scope: Scope, old: DocumentPath, new: DocumentPath, *, once: Once | None = None) -> None:
        """Move a document, or all documents of a folder; their ids and histories stay."""
        _require_below_root(old, "rename")

        def work(tx: Transaction) -> None:
            def move() -> Sequence[int]:
                rows = _required_rows(tx, old)
                if _at_or_below(tx, new) or not new.names:
                    raise Conflict(f"The destination {new} already exists")
                if old.contains(new):
                    raise InvalidRequest(f"{old} cannot be moved into itself; choose a destination outside of it")
                _require_free_for_file(tx, new)
                for path, row in rows.items():
                    tx.update(row.id, MemoryPatch(source=path.moved(old, new).source), ())
                return [row.id for row in rows.values()]

            do_once(tx, once, move, ids=lambda ids: [str(one) for one in ids], again=lambda _: ())

        self._engine.write(scope, work)

    def _required(self, scope: Scope, path: DocumentPath) -> Memory:
        memory = self.find(scope, path)
        if memory is not None:
            return memory
        raise InvalidRequest(f"The path {path} is not a file.") if self.below(scope, path) else missing(path)

    def _replace(self, scope: Scope, path: DocumentPath, memory: Memory, edit: Edit, once: Once | None) -> Edit:
        """:raises MemoryChanged: If the document is not the one that was read."""
        patch = self._engine.screening.patch(scope, MemoryPatch(text=edit.text, origin_class=OriginClass.ASSISTANT))
        text = edit.text if patch.text is None else patch.text
        stored = replace(edit, text=text, redacted=text != edit.text)
        [passages] = self._engine.prepare([text])

        def work(tx: Transaction) -> Edit:
            def store() -> Edit:
                held = reads.keyed_memory_id(tx.connection, tx.namespace_id, path.source, DOCUMENT_KEY)
                if held != memory.id or tx.memory(held).text != memory.text:
                    raise MemoryChanged(memory.id)
                tx.update(held, patch, passages)
                return stored

            return do_once(tx, once, store, ids=lambda edit: edit.kept(memory.id), again=lambda _: stored)

        return self._engine.write(scope, work)

    def _edited_before(self, scope: Scope, once: Once | None) -> Edit | None:
        """Return the edit of the same request before, with the text as it is now; None if there was none.

        The text no longer is what the edit was made of, so this comes before the edit.
        """
        if once is None:
            return None
        with self._engine.namespace(scope) as (connection, namespace):
            ids = None if namespace is None else made_before(connection, namespace.id, scope.actor, once, utc_now())
            if namespace is None or not ids:
                return None
            memory = reads.memories(connection, namespace, [int(ids[0])]).get(int(ids[0]))
        once.replayed()
        return Edit("" if memory is None else memory.text, int(ids[1].removeprefix(_LINE)), _REDACTED in ids)


def missing(path: DocumentPath) -> NotFound:
    return NotFound(f"The path {path} does not exist. Please provide a valid path.")


def _required_rows(tx: Transaction, path: DocumentPath) -> dict[DocumentPath, DocumentRow]:
    """:raises NotFound: If there are none."""
    rows = _at_or_below(tx, path)
    if not rows:
        raise missing(path)
    return rows


def _at_or_below(tx: Transaction, path: DocumentPath) -> dict[DocumentPath, DocumentRow]:
    """Return the documents at a path and below it, except those whose source, chosen by other clients, is no path."""
    rows = documents.at_or_below(tx.connection, tx.namespace, path.source)
    return {file: row for row in rows if (file := DocumentPath.of_source(row.source)) is not None}


def _require_free_for_file(tx: Transaction, path: DocumentPath) -> None:
    """Check that a path is no folder, and its folders are no files."""
    if (file := documents.first_among(tx.connection, tx.namespace, path.folders)) is not None:
        raise Conflict(f"/{file} is a file, so nothing can be below it; rename or delete it first")
    if any(path.contains(file) for file in _at_or_below(tx, path)):
        raise Conflict(f"{path} is a directory; send the path of a file")


def _require_below_root(path: DocumentPath, verb: str) -> None:
    if not path.names:
        raise InvalidRequest(f"Cannot {verb} the {ROOT} directory itself")


def _require_storable(text: str) -> None:
    if "\0" in text:
        raise InvalidRequest("A file holds no NUL characters; send the text without them")
    if is_blank(text):
        raise InvalidRequest("A file holds at least one visible character; to empty it, delete it")
    if len(text) > MAX_DOCUMENT_CHARS:
        raise InvalidRequest(
            f"A file has at most {MAX_DOCUMENT_CHARS} characters and this would have {len(text)}; "
            "split it into several files"
        )
