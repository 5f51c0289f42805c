"""The embedding model with which this replica embeds, while any replica may change that of the database.

The change is a transaction that no write overlaps, since it holds the lock of all. Each write therefore compares the
model once it has its locks: it is the same until its commit. A replica that lags behind, even one that was stopped
meanwhile, so writes nothing with the former model.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Condition
from typing import TypeVar

from souvenir.core.concurrency import ReadersWriterLock, time_left
from souvenir.core.errors import ModelReplaced

T = TypeVar("T")

ADOPTION_WAIT_S = 5.0
"""How long a request waits until the model of the database is loaded here; the default one takes some two seconds."""

WRITES_WAIT_S = 2.0


class AdoptedModel:
    """Thread-safe."""

    def __init__(self, model_id: str) -> None:
        self.id = model_id
        self.on_replaced: list[Callable[[], None]] = []
        self._in_use = ReadersWriterLock()
        self._changed = Condition()

    def require(self, stored: object) -> None:
        """:raises ModelReplaced: If the database has another model."""
        if stored != self.id:
            raise ModelReplaced

    def using(self, write: Callable[[], T]) -> T:
        """Run a write; if the database has another model, again once that is adopted.

        :raises ModelReplaced: If that takes too long; nothing was written.
        """
        while True:
            former = self.id
            try:
                with self._in_use.read():
                    return write()
            except ModelReplaced:
                self.wait(former)

    def replace(self, model_id: str, adopted: Callable[[], None]) -> None:
        """:param adopted: Called while no write is between its beginning and the end of its index update.

        :raises TimeoutError: If the writes take long; all later ones wait for them meanwhile.
        """
        with self._in_use.write(WRITES_WAIT_S):
            adopted()
            self.id = model_id
        with self._changed:
            self._changed.notify_all()

    def wait(self, former: str) -> None:
        """Return once another model than the former one is adopted.

        :raises ModelReplaced: If that takes too long.
        """
        for notify in tuple(self.on_replaced):
            notify()
        with self._changed:
            if not self._changed.wait_for(lambda: self.id != former, time_left(ADOPTION_WAIT_S)):
                raise ModelReplaced
