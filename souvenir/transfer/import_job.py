"""The job of an import: reads its spool in batches and stores each with its progress in one transaction.

The memories of a batch, the map from the ids of the file to those of this store, and the position in the file are
committed together, so a kill at any time neither loses a line nor stores one twice. Texts are embedded outside of every
lock. The backup is made before the first line that can be stored, so that a file of invalid lines makes none. A second
pass over the file creates the links, when every memory has its id. References to ids that no line
defines are dropped, since another memory may have such an id, now or later.

The role of the caller decides what a file may claim: ids, histories, authors and links of the service's own types are
kept for an admin only.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any

from souvenir.core.errors import (
    Conflict,
    ExtractionNotConfigured,
    Forbidden,
    InvalidRequest,
    KeyTaken,
    LLMError,
    PersonalDataRejected,
)
from souvenir.core.labels import AUTHORSHIP, ORIGIN
from souvenir.core.passages import PreparedPassage
from souvenir.core.stored_json import StoredJson
from souvenir.core.types import JsonObject, Link, LinkType, MemoryPatch
from souvenir.jobs.handler import TRANSIENT, RunningJob
from souvenir.memories.engine import MemoryEngine
from souvenir.models.llm.provider import LLMProvider
from souvenir.store.admin import transfers
from souvenir.store.admin.transfers import IMPORT_ID, ChangedId, StoredLine
from souvenir.store.graph.relations import RELATION, index_again
from souvenir.store.memories.reads import MERGED_FROM
from souvenir.store.sql import Connection
from souvenir.store.transaction import Transaction, require_writable
from souvenir.transfer.lines import ImportFormat, ImportLine, LineLink, SourceRemap
from souvenir.transfer.smart_import import Decision, Verdict, decide, decide_in
from souvenir.transfer.spool import MAX_LINE_BYTES, Spool, SpooledLine, Spools, spooled_lines

BATCH_LINES = 64
"""Number of memories that are embedded and stored together."""

BATCH_ENTRIES = 4096
"""Maximum number of lines of a batch, including invalid ones."""

BATCH_BYTES = 64 * 1024
"""Text of a batch, unless one line has more: some seconds of embedding in any script, then others have their turn."""

MAX_ERRORS_SHOWN = 1_000
MAX_IDS_SHOWN = 1_000
"""Maximum number of changed ids in a report, which is stored with its job."""


class Strategy(StrEnum):
    """`add` stores every line; `smart` skips existing memories and updates similar ones.

    With `SMART_EXTRACT` a language model decides which of the similar ones are updated.
    """

    ADD = "add"
    SMART = "smart"
    SMART_EXTRACT = "smart+extract"


class Phase(StrEnum):
    MEMORIES = "memories"
    LINKS = "links"
    DONE = "done"


@dataclass(slots=True)
class _State:
    """The progress and the report so far, stored in the row of the job."""

    phase: Phase = Phase.MEMORIES
    offset: int = 0
    line: int = 0
    linking: bool = False
    imported: int = 0
    skipped: int = 0
    updated: int = 0
    links: int = 0
    links_dropped: int = 0
    error_count: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)
    changed_id_count: int = 0
    changed_ids: list[ChangedId] = field(default_factory=list)
    backup: str | None = None

    def after(self, line: SpooledLine) -> _State:
        """Return a copy with the position after this line."""
        return replace(self, offset=line.end, line=line.number, errors=list(self.errors))

    def report(self) -> dict[str, Any]:
        progress = {"phase", "offset", "line", "linking"}
        return {name: value for name, value in _STATE.dump(self).items() if name not in progress}

    def add_error(self, number: int, sentence: str) -> None:
        self.error_count += 1
        if len(self.errors) < MAX_ERRORS_SHOWN:
            self.errors.append({"line": number, "error": sentence})


_STATE = StoredJson(_State, unknown="ignore")


@dataclass(frozen=True, slots=True)
class _Entry:
    """A parsed line: its content, or the reason why it is invalid; neither for a header."""

    raw: SpooledLine
    line: ImportLine | None = None
    error: str | None = None
    passages: Sequence[PreparedPassage] = ()


@dataclass(frozen=True, slots=True)
class ImportOrder:
    """The options of an import.

    :param by_admin: Whether the file may keep its ids, histories and authors, according to the caller's role.
    :param skip_imported: Whether lines are skipped whose `import_id` a stored memory has.
    """

    strategy: Strategy = Strategy.ADD
    remap: SourceRemap | None = None
    back_up: bool = True
    by_admin: bool = False
    skip_imported: bool = False

    def parameters(self, spool: Spool) -> JsonObject:
        return {**asdict(self), "line_count": spool.line_count}


class ImportHandler:
    """Runs jobs of the kind `import`, whose ids are those of their spools and whose parameters are an `ImportOrder`."""

    kind = "import"

    def __init__(
        self, engine: MemoryEngine, spools: Spools, read_as: ImportFormat, provider: LLMProvider | None = None
    ) -> None:
        """:param provider: Compares similar texts, where the strategy asks for it; closed by its owner."""
        self._engine = engine
        self._spools = spools
        self._format = read_as
        self._provider = provider

    def run(self, job: RunningJob) -> JsonObject:
        """:raises ExtractionNotConfigured: If the strategy needs a language model and none is configured any more."""
        extracts = Strategy(job.parameters["strategy"]) is Strategy.SMART_EXTRACT
        if extracts and self._provider is None:
            raise ExtractionNotConfigured
        run = _Run(self._engine, self._format, self._spools, job, self._provider if extracts else None)
        run.store_memories()
        run.make_links()
        run.report_ids()
        return run.state.report()


class _BackupMissing(Exception):
    """Rolls back the first line that was stored; it is stored again after a backup."""


class _Run:
    """One import, from its saved position to its end."""

    def __init__(
        self,
        engine: MemoryEngine,
        read_as: ImportFormat,
        spools: Spools,
        job: RunningJob,
        provider: LLMProvider | None,
    ) -> None:
        self._engine = engine
        self._provider = provider
        self._format = read_as
        self._path = spools.path(job.id)
        self._job = job
        remap = job.parameters["remap"]
        self._remap = None if remap is None else SourceRemap(**remap)
        self._smart = Strategy(job.parameters["strategy"]) is not Strategy.ADD
        # A job queued by an earlier release does not state the role.
        self._by_admin = bool(job.parameters.get("by_admin", False))
        # The file says which client wrote a memory; and an admin's who did.
        self._scope = replace(job.scope, client=None, author=None if self._by_admin else job.scope.author)
        self.state = _STATE.load(job.state)
        self._imported: Mapping[str, int] = {}
        if job.parameters.get("skip_imported"):
            with engine.namespace(job.scope) as (connection, namespace):
                self._imported = {} if namespace is None else transfers.imported_ids(connection, namespace.id)

    def store_memories(self) -> None:
        if self.state.phase is not Phase.MEMORIES:
            return
        for batch in self._batches():
            prepared = self._prepared(batch)
            # Individually if a line must be compared with the results of the previous lines.
            for part in _single(prepared) if self._smart else [prepared]:
                part, verdicts = self._decided(part)
                store = partial(self._store, part, verdicts)
                try:
                    self._write(part[-1].raw, store)
                except _BackupMissing:
                    self._back_up()
                    self._write(part[-1].raw, store)
            self._job.give_way()
        first_link = replace(self.state, phase=Phase.LINKS, offset=0, line=0)
        self._job.checkpoint(done=self._total, total=self._total, state=_STATE.dump(first_link))
        self.state = first_link

    def _back_up(self) -> None:
        state = replace(self.state, backup=self._engine.back_up_first("pre_import"))
        self._job.checkpoint(done=state.line, total=self._total, state=_STATE.dump(state))
        self.state = state

    def make_links(self) -> None:
        """The second pass; skipped if no line has a link."""
        if self.state.linking and self.state.phase is Phase.LINKS:
            for batch in self._batches():
                self._write(batch[-1].raw, partial(self._link, batch))
                self._job.give_way()

    def report_ids(self) -> None:
        """Move the changed ids from the map of the job to its report."""
        if self.state.phase is Phase.DONE:
            return

        def work(connection: Connection) -> _State:
            count, changed = transfers.changed_ids(connection, self._job.id, limit=MAX_IDS_SHOWN)
            state = replace(self.state, phase=Phase.DONE, changed_id_count=count, changed_ids=changed)
            transfers.forget_ids(connection, self._job.id)
            self._job.save(connection, done=self._total, total=self._total, state=_STATE.dump(state))
            return state

        self.state = self._engine.write_rows(work)

    @property
    def _total(self) -> int:
        return int(self._job.parameters["line_count"])

    def _write(self, last: SpooledLine, work: Callable[[Transaction, _State], None]) -> None:
        """Run `work` and save its new state, whose position is after the last line, in one transaction."""

        def with_state(tx: Transaction) -> _State:
            state = self.state.after(last)
            work(tx, state)
            done = last.number if state.phase is Phase.MEMORIES else self._total
            self._job.save(tx.connection, done=done, total=self._total, state=_STATE.dump(state))
            return state

        self.state = self._engine.write(self._scope, with_state)

    def _batches(self) -> Iterator[list[_Entry]]:
        lines = spooled_lines(self._path, offset=self.state.offset, number=self.state.line)
        for first in lines:
            batch, size = [self._read(first)], first.size
            storable = int(batch[0].line is not None)
            while storable < BATCH_LINES and len(batch) < BATCH_ENTRIES and size < BATCH_BYTES:
                if (line := next(lines, None)) is None:
                    break
                batch.append(self._read(line))
                storable += batch[-1].line is not None
                size += line.size
            yield batch

    def _read(self, raw: SpooledLine) -> _Entry:
        if raw.content is None:
            return _Entry(raw, error=f"The line is longer than {MAX_LINE_BYTES} bytes; split the memory")
        try:
            line = self._format.read(raw.content)
        except InvalidRequest as error:
            return _Entry(raw, error=error.message)
        return _Entry(raw, line if line is None or self._remap is None else self._remap.line(line))

    def _prepared(self, batch: Sequence[_Entry]) -> list[_Entry]:
        """Screen the batch and embed the passages of all lines together."""
        batch = [self._screened(entry) for entry in batch]
        drafts = [entry.line.draft for entry in batch if entry.line is not None]
        passages = iter(self._engine.prepare_drafts(drafts))
        return [entry if entry.line is None else replace(entry, passages=next(passages)) for entry in batch]

    def _screened(self, entry: _Entry) -> _Entry:
        """Screen a line and its history by the privacy policy of the agent."""
        if entry.line is None:
            return entry
        screening, scope, origin = self._engine.screening, self._job.scope, entry.line.origin
        try:
            draft = screening.draft(scope, entry.line.draft)
            safe = screening.applied(scope)
            split = {safe.text(text): made for text, made in origin.split.items()}
            history = tuple(screening.past(scope, one) for one in origin.history)
        except PersonalDataRejected as error:
            return replace(entry, line=None, error=error.message)
        if not self._by_admin:
            draft = replace(draft, metadata=_without(draft.metadata, AUTHORSHIP | ORIGIN))
        origin = replace(origin, history=history, split=split)
        return replace(entry, line=replace(entry.line, draft=draft, origin=origin))

    def _decided(self, part: Sequence[_Entry]) -> tuple[list[_Entry], list[Verdict]]:
        """Return the entries with their verdicts; a line that the model cannot compare becomes an error.

        :raises LLMUnavailable: If the model may answer later; the job is then repeated from here.
        """
        entries, verdicts = [], []
        for entry in part:
            held = None if entry.line is None else self._imported.get(str(entry.line.draft.metadata.get(IMPORT_ID)))
            verdict = Verdict(Decision.ADD) if held is None else Verdict(Decision.SKIP, held)
            if entry.line is not None and self._smart:
                try:
                    verdict = decide(self._engine, self._job.scope, entry.line, entry.passages, self._provider)
                except LLMError as error:
                    if isinstance(error, TRANSIENT) and not self._job.last_try:
                        raise
                    sentence = (
                        f"The model could not compare it with a similar memory ({error.message}); import it again"
                    )
                    entry = replace(entry, line=None, error=sentence)
            entries.append(entry)
            verdicts.append(verdict)
        return entries, verdicts

    def _store(self, entries: Sequence[_Entry], verdicts: Sequence[Verdict], tx: Transaction, state: _State) -> None:
        named = {id_ for entry in entries if entry.line is not None for id_ in _ids_of(entry.line)}
        known = transfers.remembered_ids(tx.connection, self._job.id, named)
        stored: dict[int, StoredLine] = {}
        for entry, verdict in zip(entries, verdicts, strict=True):
            if entry.error is not None:
                state.add_error(entry.raw.number, entry.error)
            if entry.line is None:
                continue
            state.linking |= bool(entry.line.links)
            state.links_dropped += entry.line.links_dropped
            old_id = entry.line.origin.id
            if old_id in known:
                state.add_error(entry.raw.number, f"An earlier line has the id {old_id}; leave it out to store both")
                continue
            try:
                line = self._store_line(tx, state, _with_own_ids(entry.line, known), entry.passages, verdict)
            except KeyTaken as error:
                # The report outlives the memory, so it does not contain the key.
                state.add_error(entry.raw.number, f"Memory ID {error.memory_id} has the key already; change that one")
                continue
            except (Conflict, Forbidden, InvalidRequest) as error:
                # Raised before any part of the line was written.
                state.add_error(entry.raw.number, error.message)
                continue
            is_missing = self._job.parameters["back_up"] and state.backup is None and self._engine.keeps_backups
            if is_missing and state.imported + state.updated:
                raise _BackupMissing
            if old_id is not None:
                known[old_id] = stored[old_id] = line
        transfers.remember_ids(tx.connection, self._job.id, stored)

    def _store_line(
        self,
        tx: Transaction,
        state: _State,
        line: ImportLine,
        passages: Sequence[PreparedPassage],
        verdict: Verdict,
    ) -> StoredLine:
        draft, origin = line.draft, line.origin
        require_writable(self._scope, draft.source)
        if not self._by_admin:
            if origin.history:
                raise Forbidden("Only an admin's key may import a history, which names actors; leave it out")
            origin = replace(origin, id=None)
        match decide_in(tx, line, verdict) if self._smart else verdict:
            case Verdict(Decision.SKIP, int(memory_id)):
                state.skipped += 1
                return StoredLine(memory_id, added=False)
            case Verdict(Decision.UPDATE, int(memory_id)):
                patch = MemoryPatch(
                    text=draft.text,
                    # The memories that it was merged from belong to its own history.
                    metadata=_without(draft.metadata, {MERGED_FROM}),
                    document_at=draft.document_at,
                    remove_document_at=draft.document_at is None,
                    created_at=origin.created_at,
                    origin_class=draft.origin_class,
                    add_tags=draft.tags,
                    facts=draft.facts or None,
                    facts_by=draft.facts_by,
                )
                tx.update(memory_id, patch, passages, action="import")
                state.updated += 1
                return StoredLine(memory_id, added=False)
        memory = tx.insert(draft, passages, action="import", origin=origin)
        state.imported += 1
        return StoredLine(memory.id, added=True)

    def _link(self, entries: Sequence[_Entry], tx: Transaction, state: _State) -> None:
        lines = [entry.line for entry in entries if entry.line is not None]
        known = transfers.remembered_ids(tx.connection, self._job.id, {id_ for line in lines for id_ in _ids_of(line)})
        for line in lines:
            own = None if line.origin.id is None else known.get(line.origin.id)
            if own is None:
                state.links_dropped += len(line.links)
            elif own.added:
                self._link_memory(tx, state, line, own.memory_id, known)
            else:
                state.links_dropped += sum(not _is_linked(tx, own.memory_id, link, known) for link in line.links)

    def _link_memory(
        self, tx: Transaction, state: _State, line: ImportLine, memory_id: int, known: Mapping[int, StoredLine]
    ) -> None:
        """Create the links of an added memory to the memories of other lines.

        Some link types can only be created by the service; only an admin may import them.
        """
        for link in line.links:
            target = known.get(link.to_id)
            may = self._by_admin or link.type in set(LinkType)
            if target is None or target.memory_id == memory_id or not may:
                state.links_dropped += 1
            elif transfers.insert_link(tx.connection, Link(memory_id, target.memory_id, link.type, link.created_at)):
                state.links += 1
                if link.type.startswith(RELATION):
                    index_again(tx.connection, tx.namespace_id, [memory_id])


def _is_linked(tx: Transaction, memory_id: int, link: LineLink, known: Mapping[int, StoredLine]) -> bool:
    """Return whether a memory that was there before has the link of its line."""
    target = known.get(link.to_id)
    return target is not None and transfers.has_link(tx.connection, memory_id, target.memory_id, link.type)


def _without(metadata: JsonObject, names: Collection[str]) -> JsonObject:
    return {name: value for name, value in metadata.items() if name not in names}


def _single(entries: Sequence[_Entry]) -> Iterator[Sequence[_Entry]]:
    """Split into parts with one memory each, preceded by the entries without one."""
    part: list[_Entry] = []
    for entry in entries:
        part.append(entry)
        if entry.line is not None:
            yield part
            part = []
    if part:
        yield part


def _merged_from(line: ImportLine) -> list[int]:
    """Return the ids in the file that the line was merged from, including those in its history."""
    states = [state for entry in line.origin.history for state in (entry.before, entry.after) if state is not None]
    return [
        old
        for metadata in (line.draft.metadata, *(state["metadata"] for state in states))
        for old in metadata.get(MERGED_FROM, ())
    ]


def _ids_of(line: ImportLine) -> list[int]:
    own = [] if line.origin.id is None else [line.origin.id]
    return [*own, *(link.to_id for link in line.links), *_merged_from(line)]


def _with_own_ids(line: ImportLine, known: Mapping[int, StoredLine]) -> ImportLine:
    """Return the line with the ids of the memories that it was merged from mapped to this store.

    An export lists memories by their ids, and a merged memory has a higher one than its sources.
    """

    def renamed(metadata: JsonObject) -> JsonObject:
        if MERGED_FROM not in metadata:
            return metadata
        return {**metadata, MERGED_FROM: [known[old].memory_id for old in metadata[MERGED_FROM] if old in known]}

    def past(state: JsonObject | None) -> JsonObject | None:
        return state and {**state, "metadata": renamed(state["metadata"])}

    history = tuple(replace(entry, before=past(entry.before), after=past(entry.after)) for entry in line.origin.history)
    draft = replace(line.draft, metadata=renamed(line.draft.metadata))
    return replace(line, draft=draft, origin=replace(line.origin, history=history))
