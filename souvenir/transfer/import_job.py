"""The job of an import: reads its spool in batches and stores each with its progress in one transaction.

What a batch stored, which id became which, and where the file goes on stand or fall together, so a kill at any time
neither loses a line nor stores one twice. Texts are embedded outside of every lock. A second pass over the file makes
the links, when every memory has its id.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Any

from souvenir.core.errors import Conflict, Forbidden, InvalidRequest, KeyTaken, PersonalDataRejected
from souvenir.core.passages import PreparedPassage
from souvenir.core.stored_json import StoredJson
from souvenir.core.types import JsonObject, Link, MemoryPatch
from souvenir.jobs.handler import RunningJob
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin import transfers
from souvenir.store.admin.transfers import StoredLine
from souvenir.store.memories import memories
from souvenir.store.memories.reads import MERGED_FROM
from souvenir.store.transaction import Transaction, require_writable
from souvenir.transfer.lines import ImportFormat, ImportLine, SourceRemap
from souvenir.transfer.smart_import import Decision, Verdict, decide, decide_in
from souvenir.transfer.spool import MAX_LINE_BYTES, Spool, SpooledLine, Spools, spooled_lines

BATCH_LINES = 64
BATCH_BYTES = 1024 * 1024
MAX_ERRORS_SHOWN = 1_000


class Strategy(StrEnum):
    """`add` stores every line; `smart` skips what is there and updates what is nearly there."""

    ADD = "add"
    SMART = "smart"


class Phase(StrEnum):
    BEGIN = "begin"
    MEMORIES = "memories"
    LINKS = "links"


@dataclass(slots=True)
class _State:
    """What the job's row remembers: how far the file is read, and the report so far.

    `last_id` is the highest memory id that the database had given out before the import.
    """

    phase: Phase = Phase.BEGIN
    offset: int = 0
    line: int = 0
    linking: bool = False
    last_id: int = 0
    imported: int = 0
    skipped: int = 0
    updated: int = 0
    links: int = 0
    links_dropped: int = 0
    error_count: int = 0
    errors: list[dict[str, Any]] = field(default_factory=list)
    backup: str | None = None

    def after(self, line: SpooledLine) -> _State:
        """A copy that stands behind the line."""
        return replace(self, offset=line.end, line=line.number, errors=list(self.errors))

    def report(self) -> dict[str, Any]:
        names = ("imported", "skipped", "updated", "errors", "error_count", "links", "links_dropped", "backup")
        return {name: getattr(self, name) for name in names}

    def add_error(self, number: int, sentence: str) -> None:
        self.error_count += 1
        if len(self.errors) < MAX_ERRORS_SHOWN:
            self.errors.append({"line": number, "error": sentence})


_STATE = StoredJson(_State)


@dataclass(frozen=True, slots=True)
class _Entry:
    """A line as it was read: what it says, or why it cannot be used; neither for a header or an empty line."""

    raw: SpooledLine
    line: ImportLine | None = None
    error: str | None = None
    passages: Sequence[PreparedPassage] = ()


@dataclass(frozen=True, slots=True)
class ImportOrder:
    """What somebody wants of an import."""

    strategy: Strategy = Strategy.ADD
    remap: SourceRemap | None = None
    back_up: bool = True

    def parameters(self, spool: Spool) -> JsonObject:
        return {**asdict(self), "line_count": spool.line_count}


class ImportHandler:
    """Runs jobs of the kind `import`, which have the id of their spool and the parameters of an `ImportOrder`."""

    kind = "import"

    def __init__(self, engine: MemoryEngine, spools: Spools, read_as: ImportFormat) -> None:
        self._engine = engine
        self._spools = spools
        self._format = read_as

    def run(self, job: RunningJob) -> JsonObject:
        run = _Run(self._engine, self._format, self._spools, job)
        run.begin()
        run.store_memories()
        run.make_links()
        self._engine.write_rows(lambda connection: transfers.forget_ids(connection, job.id))
        return run.state.report()


class _Run:
    """One import from where it stands to its end."""

    def __init__(self, engine: MemoryEngine, read_as: ImportFormat, spools: Spools, job: RunningJob) -> None:
        self._engine = engine
        self._format = read_as
        self._path = spools.path(job.id)
        self._job = job
        remap = job.parameters["remap"]
        self._remap = None if remap is None else SourceRemap(**remap)
        self._smart = Strategy(job.parameters["strategy"]) is Strategy.SMART
        self.state = _STATE.load(job.state)

    def begin(self) -> None:
        """Make the backup, and note where the id counter stands."""
        if self.state.phase is not Phase.BEGIN:
            return
        state = replace(self.state, phase=Phase.MEMORIES)
        if self._job.parameters["back_up"]:
            state.backup = self._engine.back_up(reason="pre_import").name
        with self._engine.namespace(self._job.scope) as (connection, _):
            state.last_id = memories.last_memory_id(connection)
        self._job.checkpoint(done=0, total=self._total, state=_STATE.dump(state))
        self.state = state

    def store_memories(self) -> None:
        if self.state.phase is not Phase.MEMORIES:
            return
        for batch in self._batches():
            prepared = self._prepared(batch)
            # One by one where a line is compared with what the lines before it left behind.
            for part in [[entry] for entry in prepared] if self._smart else [prepared]:
                verdicts = [self._verdict(entry) for entry in part]
                self._write(part[-1].raw, partial(self._store, part, verdicts))
        first_link = replace(self.state, phase=Phase.LINKS, offset=0, line=0)
        self._job.checkpoint(done=self._total, total=self._total, state=_STATE.dump(first_link))
        self.state = first_link

    def make_links(self) -> None:
        """A second pass; over nothing if no line has a link."""
        if self.state.linking:
            for batch in self._batches():
                self._write(batch[-1].raw, partial(self._link, batch))

    @property
    def _total(self) -> int:
        return int(self._job.parameters["line_count"])

    def _write(self, last: SpooledLine, work: Callable[[Transaction, _State], None]) -> None:
        """Run `work` in a transaction with what it says of the state, which then stands behind the last line."""

        def with_state(tx: Transaction) -> _State:
            state = self.state.after(last)
            work(tx, state)
            done = last.number if state.phase is Phase.MEMORIES else self._total
            self._job.save(tx.connection, done=done, total=self._total, state=_STATE.dump(state))
            return state

        self.state = self._engine.write(self._job.scope, with_state)

    def _batches(self) -> Iterator[list[_Entry]]:
        lines = spooled_lines(self._path, offset=self.state.offset, number=self.state.line)
        for first in lines:
            batch, size = [self._read(first)], first.size
            while len(batch) < BATCH_LINES and size < BATCH_BYTES and (line := next(lines, None)) is not None:
                batch.append(self._read(line))
                size += line.size
            yield batch

    def _read(self, raw: SpooledLine) -> _Entry:
        if raw.content is None:
            return _Entry(raw, error=f"The line is longer than {MAX_LINE_BYTES} bytes; split the memory")
        if not raw.content.strip():
            return _Entry(raw)
        try:
            line = self._format.read(raw.content)
        except InvalidRequest as error:
            return _Entry(raw, error=error.message)
        return _Entry(raw, line if line is None or self._remap is None else self._remap.line(line))

    def _prepared(self, batch: Sequence[_Entry]) -> list[_Entry]:
        """The batch screened, with the passages of every line, which are embedded together."""
        batch = [self._screened(entry) for entry in batch]
        drafts = [entry.line.draft for entry in batch if entry.line is not None]
        passages = iter(self._engine.prepare_drafts(drafts))
        return [entry if entry.line is None else replace(entry, passages=next(passages)) for entry in batch]

    def _screened(self, entry: _Entry) -> _Entry:
        """What the agent's policy lets in of a line, and of what it says of its past."""
        if entry.line is None:
            return entry
        screening, scope, origin = self._engine.screening, self._job.scope, entry.line.origin
        try:
            draft = screening.draft(scope, entry.line.draft)
            safe = screening.applied(scope)
            split = {safe.text(text): made for text, made in origin.split.items()}
            history = None if origin.history is None else [screening.past(scope, one) for one in origin.history]
        except PersonalDataRejected as error:
            return replace(entry, line=None, error=error.message)
        origin = replace(origin, history=None if history is None else tuple(history), split=split)
        return replace(entry, line=replace(entry.line, draft=draft, origin=origin))

    def _verdict(self, entry: _Entry) -> Verdict:
        if entry.line is None or not self._smart:
            return Verdict(Decision.ADD)
        return decide(self._engine, self._job.scope, entry.line, entry.passages)

    def _store(self, entries: Sequence[_Entry], verdicts: Sequence[Verdict], tx: Transaction, state: _State) -> None:
        old_ids = [entry.line.origin.id for entry in entries if entry.line and entry.line.origin.id is not None]
        seen = transfers.remembered_ids(tx.connection, self._job.id, old_ids)
        stored: dict[int, StoredLine] = {}
        for entry, verdict in zip(entries, verdicts, strict=True):
            if entry.error is not None:
                state.add_error(entry.raw.number, entry.error)
            if entry.line is None:
                continue
            old_id = entry.line.origin.id
            if old_id in seen or old_id in stored:
                state.add_error(entry.raw.number, f"An earlier line has the id {old_id}; leave it out to store both")
                continue
            try:
                line = self._store_line(tx, state, entry.line, entry.passages, verdict)
            except KeyTaken as error:
                # The report outlives the memory, so it does not repeat the key.
                state.add_error(entry.raw.number, f"Memory ID {error.memory_id} has the key already; change that one")
                continue
            except (Conflict, Forbidden, InvalidRequest) as error:
                # Raised before anything of the line was written.
                state.add_error(entry.raw.number, error.message)
                continue
            state.linking |= bool(entry.line.links or _merged_from(entry.line))
            if old_id is not None:
                stored[old_id] = line
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
        require_writable(self._job.scope, draft.source)
        if self._job.scope.sources is not None:
            if origin.history is not None:
                raise Forbidden("A history names who did what, so only an admin's key may bring one; leave it out")
            origin = replace(origin, id=None)
        match decide_in(tx, line, verdict) if self._smart else verdict:
            case Verdict(Decision.SKIP, int(memory_id)):
                state.skipped += 1
                return StoredLine(memory_id, added=False)
            case Verdict(Decision.UPDATE, int(memory_id)):
                patch = MemoryPatch(
                    text=draft.text,
                    # What it was merged from is its own past.
                    metadata={name: value for name, value in draft.metadata.items() if name != MERGED_FROM},
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
        wanted = {id_ for line in lines for id_ in _ids_of(line)}
        stored = transfers.remembered_ids(tx.connection, self._job.id, wanted)
        for line in lines:
            own = None if line.origin.id is None else stored.get(line.origin.id)
            if own is None:
                state.links_dropped += len(line.links)
            elif own.added:
                self._link_memory(tx, state, line, own.memory_id, {old: it.memory_id for old, it in stored.items()})

    def _link_memory(
        self, tx: Transaction, state: _State, line: ImportLine, memory_id: int, new_of_old: Mapping[int, int]
    ) -> None:
        """Make the links of a memory that was added, and let it name what it was merged from by the new ids.

        Such an id that no line has stays if nothing in this database can be meant by it: it is a deleted memory's.
        """
        for link in line.links:
            to_id = new_of_old.get(link.to_id, memory_id)
            if to_id == memory_id:
                state.links_dropped += 1
            elif transfers.insert_link(tx.connection, Link(memory_id, to_id, link.type, link.created_at)):
                state.links += 1
        named = _merged_from(line)
        renamed = {old: new_of_old.get(old, old) for old in named if old in new_of_old or old > state.last_id}
        if renamed != {old: old for old in named}:
            transfers.rename_sources(tx.connection, memory_id, renamed)


def _past(line: ImportLine) -> list[JsonObject]:
    """What the line says that it was before."""
    entries = line.origin.history or ()
    return [state for entry in entries for state in (entry.before, entry.after) if state is not None]


def _merged_from(line: ImportLine) -> list[int]:
    """The ids of the file that the line was merged from, also by what its history says."""
    held = [line.draft.metadata, *(state["metadata"] for state in _past(line))]
    return [old for metadata in held for old in metadata.get(MERGED_FROM, ())]


def _ids_of(line: ImportLine) -> list[int]:
    own = [] if line.origin.id is None else [line.origin.id]
    return [*own, *(link.to_id for link in line.links), *_merged_from(line)]
