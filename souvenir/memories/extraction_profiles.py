"""Manage the extraction profiles of namespaces; `souvenir.store.learning.profiles` describes their meaning."""

from __future__ import annotations

from collections.abc import Sequence

from souvenir.core.errors import InvalidRequest, NotFound
from souvenir.core.labels import SEPARATOR
from souvenir.core.types import JsonObject, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.learning import profiles as rows
from souvenir.store.learning.profiles import ExtractionProfile
from souvenir.store.transaction import Transaction


class ExtractionProfiles:
    """The profiles of one engine, in the scope's namespace."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine

    def all(self, scope: Scope) -> Sequence[ExtractionProfile]:
        """Return all profiles, ordered by prefix."""
        with self._engine.namespace(scope) as (connection, namespace):
            return [] if namespace is None else rows.every(connection, namespace)

    def get(self, scope: Scope, prefix: str) -> ExtractionProfile:
        """:raises NotFound: If there is no profile with exactly this prefix."""
        wanted = prefix_named(prefix)
        with self._engine.namespace(scope) as (connection, namespace):
            found = None if namespace is None else rows.find(connection, namespace, wanted)
        if found is None:
            raise _not_found(wanted)
        return found

    def stored(self, scope: Scope, prefix: str) -> JsonObject:
        """Return the fields that were set, with those that only a caller of `put` knows; none without a profile."""
        with self._engine.namespace(scope) as (connection, namespace):
            held = None if namespace is None else rows.fields(connection, namespace.id, prefix_named(prefix))
        return held or {}

    def put(self, scope: Scope, prefix: str, changes: JsonObject) -> ExtractionProfile:
        """Set the given fields and keep the others; None resets a field to its default."""
        wanted = prefix_named(prefix)

        def work(tx: Transaction) -> ExtractionProfile:
            rows.merge(tx.connection, tx.namespace_id, wanted, changes, tx.now)
            return rows.find(tx.connection, tx.namespace, wanted) or ExtractionProfile(wanted)

        return self._engine.write(scope, work)

    def delete(self, scope: Scope, prefix: str) -> str:
        """Delete a profile; returns its prefix as stored.

        :raises NotFound: If there is no profile with exactly this prefix.
        """
        wanted = self.get(scope, prefix).source_prefix

        def work(tx: Transaction) -> None:
            if not rows.delete(tx.connection, tx.namespace_id, wanted):
                raise _not_found(wanted)

        self._engine.write(scope, work)
        return wanted


def prefix_named(prefix: str) -> str:
    """Return a prefix as stored, with one slash at the end, so that `wip` matches `wip` and `wip/x` but not `wiper`.

    :raises InvalidRequest: If it is empty.
    """
    path = prefix.rstrip(SEPARATOR)
    if not path:
        raise InvalidRequest("A profile is of a source prefix such as wip/; name one")
    return path + SEPARATOR


def _not_found(prefix: str) -> NotFound:
    return NotFound(f"Extraction profile {prefix!r} not found; GET /extraction/profiles lists those that exist")
