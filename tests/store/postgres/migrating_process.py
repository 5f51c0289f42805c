"""A process to be killed: it migrates a store in small pages, and prints a line in the transaction of each.

python -m tests.store.postgres.migrating_process SOURCE TARGET
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

from souvenir.transfer import migration_rows
from souvenir.transfer.migration_postgres import PostgresStore
from souvenir.transfer.migration_rows import Row, Table
from souvenir.transfer.migration_stores import SqliteStore
from tests.store.postgres.moved_stores import move


def telling(insert: Any) -> Any:
    def insert_and_tell(store: Any, table: Table, rows: Sequence[Row]) -> None:
        insert(store, table, rows)
        os.write(1, f"{table.name}\n".encode())

    return insert_and_tell


if __name__ == "__main__":
    kinds: tuple[Any, ...] = (PostgresStore, SqliteStore)
    for kind in kinds:
        kind.insert = telling(kind.insert)
    migration_rows.FIRST_PAGE_ROWS = migration_rows.MAX_PAGE_ROWS = 2
    move(sys.argv[1], sys.argv[2])
