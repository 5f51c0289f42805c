"""The tags of a namespace: list, rename, merge, delete. Each change is one transaction over all memories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import re2

from souvenir.core.errors import InvalidRequest, TagNotFound
from souvenir.core.labels import clean_tags, fold
from souvenir.core.types import MemoryPatch, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.memories import reads, tags
from souvenir.store.memories.tags import TagCount
from souvenir.store.transaction import Transaction

MAX_PATTERN_BYTES = 8 * 1024 * 1024
"""Memory limit of a regex; RE2 rejects one that needs more, and matches in linear time."""


@dataclass(frozen=True, slots=True)
class TagPage:
    """:param total: The number on all pages."""

    tags: Sequence[TagCount]
    total: int


class Tags:
    """Thread-safe."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    def list(self, scope: Scope, *, regex: str | None = None, offset: int = 0, limit: int) -> TagPage:
        """Return the tags of memories that are not archived, the most used first.

        :param regex: In RE2 syntax; matches anywhere in the tag, ignoring case.
        :raises InvalidRequest: If it is no valid regex.
        """
        pattern = None if regex is None else _compiled(regex)
        with self._engine.namespace(scope) as (connection, namespace):
            found = [] if namespace is None else tags.count_each(connection, namespace)
        if pattern is not None:
            found = [one for one in found if pattern.search(one.tag)]
        return TagPage(found[offset : offset + limit], len(found))

    def rename(self, scope: Scope, old: str, new: str) -> int:
        """Replace one tag by another; returns the number of changed memories.

        :raises TagNotFound: If no memory has it. :raises InvalidRequest: If the new one is no valid tag.
        """
        return self.merge(scope, [old], new)

    def merge(self, scope: Scope, olds: Sequence[str], into: str) -> int:
        """Replace several tags by one; returns the number of changed memories.

        :raises TagNotFound: If no memory has one of them. :raises InvalidRequest: If `into` is no valid tag.
        """
        [new] = clean_tags([into])
        return self._replace(scope, olds, new)

    def delete(self, scope: Scope, tag: str) -> int:
        """Remove a tag; returns the number of memories that had it.

        :raises TagNotFound: If no memory has it.
        """
        return self._replace(scope, [tag], None)

    def _replace(self, scope: Scope, olds: Sequence[str], new: str | None) -> int:
        folded = {fold(_trimmed(old)): old for old in olds}

        def work(tx: Transaction) -> int:
            for one, old in folded.items():
                if not tags.memories_with(tx.connection, tx.namespace, [one]):
                    raise TagNotFound(old)
            since = tags.memories_with(tx.connection, tx.namespace, folded)
            memories = reads.memories(tx.connection, tx.namespace, since)
            for memory_id, added_at_us in since.items():
                left = _replaced(memories[memory_id].tags, folded, new)
                tx.update(memory_id, MemoryPatch(tags=left), ())
                if new is not None:
                    tags.backdate(tx.connection, memory_id, fold(new), added_at_us)
            return len(since)

        return self._engine.write(scope, work)


def _trimmed(tag: str) -> str:
    return " ".join(tag.split())


def _replaced(tags: Iterable[str], olds: Iterable[str], new: str | None) -> tuple[str, ...]:
    """Return the tags without the old ones and with the new one, in its spelling."""
    gone = {*olds} if new is None else {*olds, fold(new)}
    kept = tuple(tag for tag in tags if fold(tag) not in gone)
    return kept if new is None else (*kept, new)


def _compiled(regex: str) -> Any:
    options = re2.Options()
    options.max_mem = MAX_PATTERN_BYTES
    options.case_sensitive = False
    # RE2 would write to standard error; the exception reports the problem.
    options.log_errors = False
    try:
        return re2.compile(regex, options)
    except re2.error as error:
        reason = error.args[0]
        said = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise InvalidRequest(f"The regex cannot be used: {said}; write it in the syntax of RE2") from error
