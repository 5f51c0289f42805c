"""Memory blocks: labelled text that is always in an agent's context, with a limit, versions and conditional updates.

The conditions of a change are checked inside its transaction, so that of two concurrent changes to one version only the
first succeeds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from souvenir.conversations.agents import ensure_agent
from souvenir.core.concurrency import frees_space
from souvenir.core.errors import BlockChanged, BlockExists, BlockNotFound, BlockReadOnly, BlockTooLong, NothingToDo
from souvenir.core.telemetry import MemoryOperation, traced
from souvenir.core.types import Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.cascade import Removal
from souvenir.store.idempotency import Once, do_once
from souvenir.store.messages import blocks as rows
from souvenir.store.messages.agents import require_agent
from souvenir.store.messages.blocks import Block, BlockDraft, BlockVersion
from souvenir.store.sql import Connection
from souvenir.store.transaction import Transaction

DEFAULT_MAX_CHARS = 5_000
MOST_MAX_CHARS = 50_000
"""The largest limit of a block, in characters."""


@dataclass(frozen=True, slots=True)
class BlockChange:
    """A change of some fields; `None` keeps a field."""

    value: str | None = None
    description: str | None = None
    remove_description: bool = False
    max_chars: int | None = None
    read_only: bool | None = None


class Blocks:
    """The blocks of the agents of one engine; the scope's namespace is the agent."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine
        self.tracing = engine.tracing

    @traced(MemoryOperation.CREATE)
    def create(self, scope: Scope, draft: BlockDraft, *, once: Once | None = None) -> Block:
        """Create a block, and its agent if necessary.

        :raises BlockExists: If the label is taken. :raises BlockTooLong: If the value exceeds the limit.
        """
        value = self._engine.screening.text(scope, draft.value)
        draft = replace(draft, value=value, description=self._screened(scope, draft.description))
        _require_fits(draft)

        def work(tx: Transaction) -> Block:
            ensure_agent(tx)
            return do_once(
                tx,
                once,
                lambda: _create(tx, draft),
                ids=lambda made: [made.uid],
                again=lambda _: _require_block(tx.connection, tx.namespace_id, draft.label),
            )

        return self._engine.write(scope, work)

    def get(self, scope: Scope, label: str, as_of: datetime | None = None) -> Block:
        """Return a block, as it was at a time if one is given.

        :raises AgentNotFound: If there is no such agent. :raises BlockNotFound: If it has, or had, no such block.
        """
        with self._engine.namespace(scope) as (connection, _):
            return _require_block(connection, require_agent(connection, scope).namespace_id, label, as_of)

    def page(
        self, scope: Scope, as_of: datetime | None = None, *, offset: int, limit: int
    ) -> tuple[Sequence[Block], int]:
        """Return a page in order of creation, which is the order in the context, and the total number.

        :param as_of: As they were then; None for now. :raises AgentNotFound: If there is no such agent.
        """
        with self._engine.namespace(scope) as (connection, _):
            agent = require_agent(connection, scope)
            return rows.page(connection, agent.namespace_id, offset=offset, limit=limit, as_of=as_of)

    def history(self, scope: Scope, label: str, *, offset: int, limit: int) -> tuple[Sequence[BlockVersion], int]:
        """Return the versions of a block, newest first, and their total number.

        :raises BlockNotFound: If there is no such block.
        """
        with self._engine.namespace(scope) as (connection, _):
            block = _require_block(connection, require_agent(connection, scope).namespace_id, label)
            return rows.versions(connection, block.id, offset=offset, limit=limit)

    @traced(MemoryOperation.UPDATE, records=lambda _: 1)
    def update(self, scope: Scope, label: str, change: BlockChange, *, expected: frozenset[int] | None = None) -> Block:
        """Change a block. A change without effect creates no version.

        :param expected: Accepted current versions; None for any.
        :raises NothingToDo: If the change names no field.
        :raises BlockNotFound: If there is no such block. :raises BlockChanged: If it has another version.
        :raises BlockReadOnly: If it is read-only, and the change does not end that.
        :raises BlockTooLong: If the value would exceed the limit.
        """
        if change == BlockChange():
            raise NothingToDo("Nothing to update; give value, description, limit or read_only")
        change = replace(
            change, value=self._screened(scope, change.value), description=self._screened(scope, change.description)
        )

        def after(block: Block) -> BlockDraft:
            if expected is not None and block.version not in expected:
                raise BlockChanged(label, block.version)
            if block.read_only and change.read_only is not False:
                raise BlockReadOnly(label)
            return _changed(_draft_of(block), change)

        return self._write(scope, label, after)

    @traced(MemoryOperation.UPDATE, records=lambda _: 1)
    def edit(self, scope: Scope, label: str, text: str, edit: Callable[[str, str], str]) -> Block:
        """Apply `edit` to the current value of a block and a text, atomically under concurrent changes.

        :raises BlockNotFound: If there is no such block. :raises BlockReadOnly: If it is read-only.
        :raises BlockTooLong: If the value would exceed the limit.
        """
        screened = self._engine.screening.text(scope, text)

        def after(block: Block) -> BlockDraft:
            if block.read_only:
                raise BlockReadOnly(label)
            return replace(_draft_of(block), value=edit(block.value, screened))

        return self._write(scope, label, after)

    def _write(self, scope: Scope, label: str, after: Callable[[Block], BlockDraft]) -> Block:
        def work(tx: Transaction) -> Block:
            block = _require_block(tx.connection, require_agent(tx.connection, scope).namespace_id, label)
            draft = after(block)
            _require_fits(draft)
            if draft == _draft_of(block):
                return block
            rows.update(tx, draft)
            return _require_block(tx.connection, tx.namespace_id, label)

        return self._engine.write(scope, work)

    def _screened(self, scope: Scope, text: str | None) -> str | None:
        """Apply the agent's privacy policy."""
        return None if text is None else self._engine.screening.text(scope, text)

    @traced(MemoryOperation.DELETE, records=lambda _: 1)
    @frees_space()
    def delete(self, scope: Scope, label: str) -> str:
        """Delete a block and all of its versions permanently, even if it is read-only or damaged; return its public id.

        :raises BlockNotFound: If there is no such block.
        """

        def work(tx: Transaction) -> str:
            key = rows.key_of(tx.connection, require_agent(tx.connection, scope).namespace_id, label)
            if key is None:
                raise BlockNotFound(label)
            block_id, uid = key
            Removal(tx.connection).blocks([block_id], tx.namespace_id)
            return uid

        return self._engine.write(scope, work)


def _require_block(connection: Connection, namespace_id: int, label: str, as_of: datetime | None = None) -> Block:
    """:raises BlockNotFound: If there is no such block, or was none at that time."""
    block = rows.find(connection, namespace_id, label, as_of)
    if block is None:
        raise BlockNotFound(label)
    return block


def _create(tx: Transaction, draft: BlockDraft) -> Block:
    if rows.find(tx.connection, tx.namespace_id, draft.label) is not None:
        raise BlockExists(draft.label)
    rows.insert(tx, draft)
    return _require_block(tx.connection, tx.namespace_id, draft.label)


def _require_fits(draft: BlockDraft) -> None:
    if len(draft.value) > draft.max_chars:
        raise BlockTooLong(draft.label, len(draft.value), draft.max_chars)


def _draft_of(block: Block) -> BlockDraft:
    return BlockDraft(block.label, block.value, block.description, block.max_chars, block.read_only)


def _changed(before: BlockDraft, change: BlockChange) -> BlockDraft:
    return replace(
        before,
        value=before.value if change.value is None else change.value,
        description=_description(before, change),
        max_chars=before.max_chars if change.max_chars is None else change.max_chars,
        read_only=before.read_only if change.read_only is None else change.read_only,
    )


def _description(before: BlockDraft, change: BlockChange) -> str | None:
    if change.remove_description:
        return None
    return before.description if change.description is None else change.description
