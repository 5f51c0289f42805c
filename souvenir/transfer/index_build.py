"""The build job: memories from the sections of Markdown files, added and updated, never deleted.

A section is identified by its file (the memory's source) and its headings (its key). A section whose text is already
stored is not written, so an interrupted build is simply repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from souvenir.core.errors import Conflict, Forbidden, PersonalDataRejected
from souvenir.core.stored_json import StoredJson
from souvenir.core.types import JsonObject, Memory, MemoryDraft, OriginClass
from souvenir.jobs.handler import RunningJob
from souvenir.memories.engine import MemoryEngine
from souvenir.store.admin import transfers
from souvenir.store.transaction import Transaction
from souvenir.transfer.markdown import Section, sections
from souvenir.transfer.workspace import UnreadableFile, Workspace

BATCH_SECTIONS = 64
MAX_ERRORS_SHOWN = 1_000

ORIGIN = "markdown"
"""The metadata `origin` of memories stored by a build."""


@dataclass(frozen=True, slots=True)
class _State:
    """The number of finished files and the report so far; `sections` counts those of finished files."""

    files: int = 0
    processed: int = 0
    sections: int = 0
    added: int = 0
    updated: int = 0
    gone: int = 0
    backup: str | None = None
    error_count: int = 0
    errors: list[dict[str, str]] = field(default_factory=list)

    def with_error(self, path: str, reason: str) -> _State:
        shown = [*self.errors, {"file": path, "error": reason}][:MAX_ERRORS_SHOWN]
        return replace(self, error_count=self.error_count + 1, errors=shown)


_STATE = StoredJson(_State)


class BuildHandler:
    """Runs jobs of the kind `build` with parameters made by `parameters`."""

    kind = "build"

    def __init__(self, engine: MemoryEngine, workspace: Workspace) -> None:
        self._engine = engine
        self._workspace = workspace

    @staticmethod
    def parameters(files: Sequence[str]) -> JsonObject:
        return {"files": list(files)}

    def run(self, job: RunningJob) -> JsonObject:
        run = _Run(self._engine, self._workspace, job)
        for path in job.parameters["files"][run.state.files :]:
            run.store_file(path)
            job.give_way()
        return _STATE.dump(run.state)


class _Run:
    """One build, from its saved position to its end."""

    def __init__(self, engine: MemoryEngine, workspace: Workspace, job: RunningJob) -> None:
        self._engine = engine
        self._workspace = workspace
        self._job = job
        self.state = _STATE.load(job.state)

    def store_file(self, path: str) -> None:
        try:
            found = list(sections(self._workspace.text(path)))
            done = self._store(path, found)
        except UnreadableFile as error:
            done = self.state.with_error(path, str(error))
        except (Conflict, Forbidden, PersonalDataRejected) as error:
            done = self.state.with_error(path, error.message)
        self._checkpoint(replace(done, files=done.files + 1))

    def _store(self, path: str, found: Sequence[Section]) -> _State:
        """Store the sections that changed, and return the state after this file."""
        stored = self._stored(path)
        changed = [section for section in found if not _equals(stored.get(section.key), self._screened(section.text))]
        if changed and self.state.backup is None and self._engine.keeps_backups:
            self._checkpoint(replace(self.state, backup=self._engine.back_up_first("pre_build")))
        remaining = iter(changed)
        while batch := list(islice(remaining, BATCH_SECTIONS)):
            self._write(path, batch)
        keys = {section.key for section in found}
        gone = sum(memory.metadata.get("origin") == ORIGIN for key, memory in stored.items() if key not in keys)
        state = self.state
        return replace(
            state, processed=state.processed + 1, sections=state.sections + len(found), gone=state.gone + gone
        )

    def _screened(self, text: str) -> str:
        """Return the section as the privacy policy allows it to be stored."""
        return self._engine.screening.text(self._job.scope, text)

    def _stored(self, path: str) -> dict[str, Memory]:
        with self._engine.namespace(self._job.scope) as (connection, namespace):
            return {} if namespace is None else transfers.keyed_memories(connection, namespace, path)

    def _write(self, path: str, batch: Sequence[Section]) -> None:
        drafts = [
            MemoryDraft(
                section.text,
                path,
                {"origin": ORIGIN, "heading": section.headings},
                key=section.key,
                origin_class=OriginClass.DOCUMENT,
            )
            for section in batch
        ]
        drafts = [self._engine.screening.draft(self._job.scope, draft) for draft in drafts]
        prepared = self._engine.prepare([draft.text for draft in drafts])

        def work(tx: Transaction) -> _State:
            outcomes = [tx.upsert(draft, passages) for draft, passages in zip(drafts, prepared, strict=True)]
            created = sum(outcome.created for outcome in outcomes)
            updated = len(outcomes) - created
            state = replace(self.state, added=self.state.added + created, updated=self.state.updated + updated)
            self._job.save(tx.connection, done=state.files, total=self._total, state=_STATE.dump(state))
            return state

        self.state = self._engine.write(self._job.scope, work)

    def _checkpoint(self, state: _State) -> None:
        self._job.checkpoint(done=state.files, total=self._total, state=_STATE.dump(state))
        self.state = state

    @property
    def _total(self) -> int:
        return len(self._job.parameters["files"])


def _equals(memory: Memory | None, text: str) -> bool:
    return memory is not None and memory.text == text
