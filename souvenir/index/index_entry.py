"""The registry's entry for one index."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

from souvenir.core.array_file import ArrayFile
from souvenir.core.passages import IndexChange
from souvenir.index.namespace import NamespaceIndex


@dataclass(slots=True)
class IndexEntry:
    """`index` is None while it loads; `pending` holds the writes committed meanwhile.

    `changed_rows` is the number of rows changed since the snapshot, `left_out` that of stored passages without a row,
    since they have no embedding that can be read. `unchecked` is a large snapshot whose checksums are still to be
    compared, and `damage` the result. `following` is held while the index catches up with other processes.
    """

    loaded: threading.Event = field(default_factory=threading.Event)
    index: NamespaceIndex | None = None
    failure: BaseException | None = None
    pending: list[tuple[Sequence[IndexChange], int]] = field(default_factory=list)
    changed_rows: int = 0
    left_out: int = 0
    unchecked: ArrayFile | None = None
    damage: str | None = None
    following: threading.Lock = field(default_factory=threading.Lock)
