"""Job that applies the current privacy rules, and the agent's policy, to everything a namespace stored before.

Tables are processed in small transactions that save the progress. A row that changes between its read and its write is
read again. Nothing is refused: text that a policy rejects is redacted. Topic flags are added and never removed, because
callers set them too. Old bytes remain in backups, in the database files and in indexes until they are overwritten; only
an erasure removes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from souvenir.core.passages import PreparedPassage
from souvenir.core.stored_json import StoredJson
from souvenir.core.types import FactsBy, Filters, JsonObject, Memory, MemoryDraft, MemoryPatch, PassageKind, RecordKind
from souvenir.jobs.handler import RunningJob
from souvenir.learning.transcripts.json_form import redacted
from souvenir.memories.engine import MemoryEngine
from souvenir.privacy.screening import AppliedPolicy
from souvenir.store import privacy
from souvenir.store.admin import transfers
from souvenir.store.graph import mentions
from souvenir.store.learning import extractions
from souvenir.store.memories import facts, reads
from souvenir.store.messages import blocks, messages
from souvenir.store.messages.messages import Message
from souvenir.store.transaction import Transaction

BATCH_SIZE = 64
SPEAKER = privacy.Column("messages", "speaker")
MEMORIES, MESSAGES, BLOCKS, TRANSCRIPTS = "memories", "messages", "blocks", "transcripts"
MESSAGE_VERSIONS = "message_versions"
COLUMNS = tuple(column.name.lower() for column in privacy.Columns)
ORDER = (MEMORIES, MESSAGES, BLOCKS, TRANSCRIPTS, *COLUMNS, MESSAGE_VERSIONS)
"""History and versions come last, because by then they contain the changes of memories and messages."""


@dataclass(frozen=True, slots=True)
class _RescanState:
    """`done` tables of `ORDER` are finished; `last` is the last row read of the next one."""

    done: int = 0
    last: int = 0
    looked_at: int = 0
    changed: int = 0


_STATE = StoredJson(_RescanState)


class PrivacyRescan:
    """Runs jobs of the kind `rescan`, for the namespace of their scope."""

    kind = "rescan"

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    def run(self, job: RunningJob) -> JsonObject:
        run = _RescanRun(self._engine, job)
        while run.state.done < len(ORDER):
            run.step(ORDER[run.state.done])
        return {"looked_at": run.state.looked_at, "changed": run.state.changed}


class _RescanRun:
    def __init__(self, engine: MemoryEngine, job: RunningJob) -> None:
        self._engine = engine
        self._job = job
        self.state = _STATE.load(job.state)

    def step(self, table: str) -> None:
        """Process the next batch of a table."""
        match table:
            case "memories":
                self._memories()
            case "messages":
                self._messages()
            case "blocks":
                self._blocks()
            case "transcripts":
                self._transcripts()
            case "message_versions":
                self._message_versions()
            case _:
                self._column(privacy.Columns[table.upper()].value)

    # --- searchable texts ---------------------------------------------------------------------------------------

    def _memories(self) -> None:
        with self._engine.namespace(self._job.scope) as (connection, namespace):
            found = (
                transfers.selected(connection, namespace, Filters(), after_id=self.state.last, limit=BATCH_SIZE)
                if namespace is not None
                else []
            )
        safe = {memory.id: self._screened_memory(memory) for memory in found}
        stale = [memory for memory in found if safe[memory.id] != _said(memory)]
        drafts = [
            MemoryDraft(safe[memory.id].text or "", memory.source, facts=safe[memory.id].facts or ())
            for memory in stale
        ]
        prepared = self._engine.prepare_drafts(drafts)

        def write(tx: Transaction) -> int | None:
            now = reads.as_stored(tx.connection, tx.namespace, [memory.id for memory in stale])
            if any(not _says_the_same(now.get(memory.id), memory) for memory in stale):
                return None
            for memory, passages in zip(stale, prepared, strict=True):
                waits = facts.is_queued(tx.connection, memory.id)
                tx.update(memory.id, replace(safe[memory.id], split_later=waits), passages, action="rescan")
            return len(stale)

        self._advance([memory.id for memory in found], write)

    def _messages(self) -> None:
        with self._engine.namespace(self._job.scope) as (connection, namespace):
            if namespace is None:
                ids, stored = [], dict[int, Message]()
            else:
                ids = privacy.message_ids(connection, namespace.id, after_id=self.state.last, limit=BATCH_SIZE)
                stored = messages.by_id(connection, namespace.id, ids)
        safe = {id_: self._screened_message(one) for id_, one in stored.items()}
        stale = [one for id_, one in stored.items() if safe[id_] != one]
        after = [safe[one.id] for one in stale]
        prepared = self._engine.prepare([one.content for one in after], spoken_by=[one.spoken_by for one in after])

        def write(tx: Transaction) -> int | None:
            now = messages.by_id(tx.connection, tx.namespace_id, [one.id for one in stale])
            if any(now.get(one.id) != one for one in stale):
                return None
            said_otherwise = [
                one.id for one, before in zip(after, stale, strict=True) if _spoken(one) != _spoken(before)
            ]
            extractions.forget_said(tx.connection, tx.namespace_id, said_otherwise)
            for one, passages in zip(after, prepared, strict=True):
                _replace_message(tx, one, passages)
            return len(after)

        self._advance(ids, write)

    # --- other texts ---------------------------------------------------------------------------------------------

    def _blocks(self) -> None:
        """Process all blocks at once: an agent has few."""

        def write(tx: Transaction) -> int:
            stale = 0
            for block in blocks.page(tx.connection, tx.namespace_id)[0]:
                value, description = self._text(block.value), block.description and self._text(block.description)
                if (value, description) != (block.value, block.description):
                    draft = blocks.BlockDraft(block.label, value, description, block.max_chars, block.read_only)
                    blocks.update(tx, replace(draft, max_chars=max(draft.max_chars, len(value))))
                    stale += 1
            return stale

        self._advance([], write)

    def _transcripts(self) -> None:
        """Blank the transcripts that would change: the positions of their quotes would be wrong in a changed one."""
        policy = self._engine.screening.applied(self._job.scope, refuse=False)
        with self._engine.namespace(self._job.scope) as (connection, _):
            kept = extractions.with_transcripts(connection, self._job.scope.namespace)
        stale = [job_id for job_id in kept if self._changes(job_id, policy)]

        def write(tx: Transaction) -> int:
            extractions.blank_transcripts(tx.connection, stale)
            return len(stale)

        self._advance([], write)

    def _changes(self, job_id: str, policy: AppliedPolicy) -> bool:
        """Return whether a transcript contains what the policy redacts."""
        with self._engine.namespace(self._job.scope) as (connection, _):
            found = extractions.find(connection, job_id)
        self._job.give_way()
        if found is None or found.transcript is None:
            return False
        return redacted(found.transcript, policy) != found.transcript

    def _message_versions(self) -> None:
        """Redact and flag former texts: an answer of an earlier time hides topics by the flags of then."""
        with self._engine.namespace(self._job.scope) as (connection, namespace):
            after = self.state.last
            ids: list[int] = []
            if namespace is not None:
                ids, _ = privacy.message_versions(connection, namespace.id, after_id=after, limit=BATCH_SIZE)

        def write(tx: Transaction) -> int:
            _, found = privacy.message_versions(tx.connection, tx.namespace_id, after_id=after, limit=BATCH_SIZE)
            stale = 0
            for version in found:
                content, metadata = self._screened(version.content, version.metadata)
                if (content, metadata) != (version.content, version.metadata):
                    privacy.put_message_version(tx.connection, replace(version, content=content, metadata=metadata))
                    stale += 1
            return stale

        self._advance(ids, write)

    def _column(self, column: privacy.Column) -> None:
        """Process a batch by row count, because not every table has integer keys."""
        with self._engine.namespace(self._job.scope) as (connection, namespace):
            known = [] if namespace is None else privacy.keys(connection, namespace.id, column)
        batch = known[self.state.last : self.state.last + BATCH_SIZE]

        def write(tx: Transaction) -> int:
            stale = 0
            for key, value in privacy.values(tx.connection, column, batch).items():
                safe = self._stored(column, value)
                if safe != value:
                    privacy.put(tx.connection, column, key, safe)
                    stale += 1
            return stale

        self._advance([self.state.last + number for number, _ in enumerate(batch, 1)], write)

    # --- common --------------------------------------------------------------------------------------------------

    def _advance(self, looked_at: Sequence[int], write: Callable[[Transaction], int | None]) -> None:
        """Write the result of a batch together with the progress; a table without remaining rows is done.

        :param write: Returns the number of changed rows; None if they changed since they were read, and are read again.
        """

        def work(tx: Transaction) -> _RescanState:
            changed = write(tx)
            if changed is None:
                return self.state
            state = replace(
                self.state,
                looked_at=self.state.looked_at + len(looked_at),
                changed=self.state.changed + changed,
            )
            more = len(looked_at) == BATCH_SIZE
            state = replace(state, last=looked_at[-1]) if more else replace(state, last=0, done=state.done + 1)
            self._job.save(tx.connection, done=state.looked_at, total=None, state=_STATE.dump(state))
            return state

        self.state = self._engine.write(self._job.scope, work)
        self._job.give_way()

    def _screened_memory(self, memory: Memory) -> MemoryPatch:
        """Screen the text with its facts, so that these keep no word that is removed from the text."""
        text, metadata = self._screened(memory.text, memory.metadata)
        facts: dict[str, None] = {}
        for fact in memory.facts:
            said, metadata = self._screened(fact.text, metadata)
            facts.setdefault(said)
        return replace(_said(memory), text=text, metadata=metadata, facts=tuple(facts) or None)

    def _screened(self, text: str, metadata: JsonObject | None) -> tuple[str, JsonObject | None]:
        return self._engine.screening.content(self._job.scope, text, metadata, refuse=False)

    def _screened_message(self, message: Message) -> Message:
        content, metadata = self._screened(message.content, message.metadata)
        speaker = None if message.speaker is None else self._text(message.speaker)
        return replace(message, content=content, metadata=metadata, speaker=speaker)

    def _text(self, text: str) -> str:
        return self._engine.screening.text(self._job.scope, text, refuse=False)

    def _stored(self, column: privacy.Column, value: Any) -> Any:
        """Screen a value; what is found in the texts of a memory's former state is noted in its metadata."""
        if not column.is_json:
            return self._text(value)
        safe = self._json(value)
        if column.table != "history" or "text" not in value:
            return safe
        metadata = value.get("metadata")
        for text in (value["text"], *(fact["text"] for fact in value.get("facts", ()))):
            _, metadata = self._screened(text, metadata)
        return safe if metadata is None else {**safe, "metadata": metadata}

    def _json(self, value: Any) -> Any:
        return self._engine.screening.metadata(self._job.scope, value, refuse=False)


def _replace_message(tx: Transaction, message: Message, passages: Sequence[PreparedPassage]) -> None:
    metadata = message.metadata or {}
    messages.update(tx.connection, message.id, content=message.content, metadata=metadata, at=tx.now)
    if message.speaker is not None:
        privacy.put(tx.connection, SPEAKER, message.id, message.speaker)
    tx.passages.delete(PassageKind.MESSAGE, [message.id])
    tx.passages.insert(message.owner, passages)
    mentions.reread(tx.connection, tx.namespace_id, RecordKind.MESSAGE, message.id)


def _spoken(message: Message) -> tuple[str, str | None]:
    """The fields of a message that a transcript contains."""
    return message.content, message.speaker


def _said(memory: Memory) -> MemoryPatch:
    """The fields of a memory that are screened."""
    facts = tuple(fact.text for fact in memory.facts)
    made_by = memory.facts[0].made_by if facts else FactsBy.CALLER
    return MemoryPatch(text=memory.text, metadata=memory.metadata, facts=facts or None, facts_by=made_by)


def _says_the_same(now: Memory | None, before: Memory) -> bool:
    return now is not None and _said(now) == _said(before)
