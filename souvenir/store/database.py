"""The database as the service uses it, whatever the engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import datetime
from types import MappingProxyType
from typing import Protocol, TypeVar

from souvenir.core.passages import CommitId, Embeddable, Embedding
from souvenir.core.quotas import Quotas
from souvenir.core.service_warnings import ServiceWarnings
from souvenir.core.types import Scope
from souvenir.store.index_changes import IndexUpdate
from souvenir.store.sql import Connection
from souvenir.store.sqlite.backups import Backup, Backups
from souvenir.store.sqlite.copies import Copies
from souvenir.store.transaction import Transaction
from souvenir.store.unreadable import UnreadableRows
from souvenir.store.vectors import NextModel

T = TypeVar("T")


class Database(Protocol):
    """Safe to call from any thread.

    :param is_shared: Whether other processes write too, so that an index may be behind whenever it is used.
    :param on_commit: Called after every commit of changes, soon after those of other processes; must be quick.
    :param on_news: Called soon after commits of other processes, on a thread of the database.
    :param on_replaced: Called when commits may have been lost without a restart, as in a failover; must not use it.
    :param on_model_replaced: Called when a request noticed that another process changed the model; must be quick.
    """

    is_shared: bool
    warnings: ServiceWarnings
    unreadable: UnreadableRows
    next_model: NextModel | None
    quotas_of: Callable[[str], Quotas]
    on_commit: list[Callable[[], None]]
    on_news: list[Callable[[], None]]
    on_replaced: list[Callable[[], None]]
    on_model_replaced: list[Callable[[], None]]
    backups: Backups
    copies: Copies

    @property
    def model_id(self) -> str:
        """The model that made the vectors, as far as this process knows."""

    @property
    def replica(self) -> str:
        """The id of this process among those that write."""

    def owns(self, key: str) -> bool:
        """Return whether this process does the background work of a key, such as a namespace; of all, mostly one does.

        Work that must not be done twice is also guarded by its transaction.
        """

    def runs(self, replica: str) -> bool:
        """Return whether a process is running, as far as is known."""

    @property
    def reachable(self) -> bool:
        """True if the database server was available at the last check."""

    def connections(self) -> Mapping[str, int]:
        """Return the numbers of connections to a server, by what they do, and of requests that wait for one."""

    @property
    def committed(self) -> CommitId:
        """The last durable commit."""

    @property
    def bytes_on_disk(self) -> tuple[int, int]:
        """Sizes of the database and of its write-ahead log."""

    def read(self) -> AbstractContextManager[Connection]:
        """Return a connection with one consistent snapshot of the database."""

    def read_once(self) -> AbstractContextManager[Connection]:
        """Return a connection for a single statement, or several that may see different states."""

    def reader(self) -> AbstractContextManager[Connection]:
        """Return a connection for work that already runs inside `between_writes`."""

    def write(
        self,
        scope: Scope,
        now: datetime,
        work: Callable[[Transaction], T],
        apply: Callable[[IndexUpdate], None],
        again: Mapping[tuple[str, Embeddable], Embedding] = MappingProxyType({}),
    ) -> T:
        """Run `work` in one durable transaction, pass its index changes to `apply`, and return its result.

        :param again: Vectors, by model and text, of passages that were prepared with another model.
        :raises ModelChanged: If vectors of the current model are still missing; nothing was written.
        """

    def write_rows(
        self, work: Callable[[Connection], T], apply: Callable[[T], None] = lambda _: None, *, alone: bool = True
    ) -> T:
        """Run `work`, which changes no memory, in one durable transaction; `apply` updates the indexes.

        :param alone: Whether no other write may run meanwhile; False if each statement is right whatever others do.
        """

    def switch_model(
        self, model_id: str, spec: str, ready: Callable[[Connection], bool], switched: Callable[[], None]
    ) -> bool:
        """Switch searches to another model's vectors, in one step, while nothing is written.

        :param ready: Returns whether all vectors exist; may write, and raise to change nothing.
        :param switched: Called before any later write, and before any later read of the vectors; must not fail.
        :raises TimeoutError: If a long read does not end soon; nothing was changed.
        :raises ModelReplaced: If the database was changed, and this process does not use the model yet.
        """

    def adopt_model(self, model_id: str, adopted: Callable[[], None]) -> bool:
        """Use the model that another process changed the database to; return False if it is not this one.

        :param adopted: Called while nothing is written; must not fail.
        :raises TimeoutError: If a long write does not end soon.
        """

    def require_model(self, connection: Connection, model_id: str) -> None:
        """:raises ModelReplaced: If this is neither the model of the database nor the next one."""

    def await_model(self, former: str) -> None:
        """Return once this process uses another model than the former one.

        :raises ModelReplaced: If that takes too long.
        """

    def between_writes(self, work: Callable[[], T]) -> T:
        """Run `work` while no index of this process changes."""

    def check_for_damage(self) -> None:
        """Look for damage that the start did not look for."""

    def stop_checking(self) -> None:
        """Let `check_for_damage` end, before a close."""

    def sync_marker(self) -> None:
        """Make the record of the last commit durable, by which a loss of commits is seen."""

    def refill_reserve(self) -> None:
        """Take up the space in reserve for deletions, if it was used and there is space again."""

    def clear_unused(self) -> bool:
        """Clear deleted bytes; return False if it has to be tried again."""

    def back_up(self, *, reason: str, now: datetime) -> Backup:
        """Copy the database while reads and writes go on."""

    def restore(self, name: str, *, now: datetime, switched: Callable[[], None]) -> Backup:
        """Replace the database by a backup, after a backup of the current state, which is returned."""

    def problems(self, connection: Connection) -> list[str]:
        """Return one sentence for each inconsistency within the database."""

    def repair(self) -> list[str]:
        """Repair damaged rows as far as they are stored twice; return one sentence for each repair."""

    def close(self) -> None:
        """Finish queued writes and close all connections."""
