"""Group commit: writes that wait for each other are one transaction, and each of them fails alone."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from pydantic import SecretStr

from souvenir.core.concurrency import Deadline, deadline
from souvenir.core.errors import DatabaseUnavailable, DeadlineExceeded, InvalidRequest, Overloaded
from souvenir.core.settings import Settings
from souvenir.core.types import MemoryDraft, Scope
from souvenir.memories.engine import MemoryEngine
from souvenir.store.postgres import database
from souvenir.store.postgres.connection import PostgresConnection
from souvenir.store.postgres.write_groups import PendingWrite
from tests.fake_embedder import FakeEmbedder

WAIT_S = 20.0
Work = Callable[[Any], object]


@pytest.fixture
def settings(tmp_path: Path, server_address: str) -> Settings:
    return Settings(data_dir=tmp_path, database_url=SecretStr(server_address), write_timeout_s=WAIT_S)


@pytest.fixture
def engine(settings: Settings, postgres: PostgresConnection) -> Iterator[MemoryEngine]:
    engine = MemoryEngine.open(settings, FakeEmbedder())
    yield engine
    assert list(engine.check()) == []
    engine.close()


@contextmanager
def held(engine: MemoryEngine, pool: ThreadPoolExecutor) -> Iterator[None]:
    """Keep the lock of all for the block, so that writes gather."""
    begun, release = threading.Event(), threading.Event()

    def hold(_: object) -> None:
        begun.set()
        release.wait(WAIT_S)

    holding = pool.submit(engine.write_rows, hold)
    assert begun.wait(WAIT_S)
    try:
        yield
    finally:
        release.set()
        holding.result(WAIT_S)


def gathered(
    engine: MemoryEngine, pool: ThreadPoolExecutor, works: list[Work], *, waiting: int = 0
) -> list[Future[object]]:
    """Submit writes one after the other, each when the one before waits, after others that do."""
    writes = []
    for count, work in enumerate(works, waiting + 1):
        writes.append(pool.submit(engine.write_rows, work))
        until_s = time.monotonic() + WAIT_S
        while engine._database._waiting_writes() < count:  # type: ignore[attr-defined]
            assert time.monotonic() < until_s
            time.sleep(0.001)
    return writes


def transaction_of(connection: Any) -> object:
    return connection.execute("SELECT CAST(pg_current_xact_id() AS TEXT)").get


def test_writes_that_wait_together_are_one_transaction(engine: MemoryEngine):
    with ThreadPoolExecutor(9) as pool:
        with held(engine, pool):
            writes = gathered(engine, pool, [transaction_of] * 8)
        assert len({write.result(WAIT_S) for write in writes}) == 1


def test_a_write_that_fails_leaves_nothing_and_the_others_of_its_group_are_stored(engine: MemoryEngine):
    def stores(key: str) -> Work:
        return lambda connection: connection.execute("INSERT INTO meta VALUES (?, 'here')", (key,)).fetchall()

    def fails(connection: Any) -> None:
        stores("failed")(connection)
        raise InvalidRequest("no")

    def breaks(connection: Any) -> None:
        stores("broken")(connection)
        connection.execute("INSERT INTO meta VALUES (NULL, 'x')")

    with ThreadPoolExecutor(9) as pool:
        with held(engine, pool):
            first, failed, broken, last = gathered(engine, pool, [stores("first"), fails, breaks, stores("last")])
        first.result(WAIT_S), last.result(WAIT_S)
        with pytest.raises(InvalidRequest, match="no"):
            failed.result(WAIT_S)
        with pytest.raises(Exception, match="null value"):
            broken.result(WAIT_S)
    with engine.namespace(Scope()) as (connection, _):
        rows = connection.execute(
            "SELECT key FROM meta WHERE key IN ('first', 'failed', 'broken', 'last') ORDER BY key"
        )
        assert [row[0] for row in rows] == ["first", "last"]


def test_a_group_that_meets_another_transaction_is_repeated_one_by_one(
    engine: MemoryEngine, postgres: PostgresConnection
):
    tries: list[str] = []

    def conflicts(connection: Any) -> object:
        tries.append("conflicts")
        if len(tries) == 1:
            postgres.execute("INSERT INTO meta VALUES ('contested', 'theirs')")
        stored = connection.execute("SELECT value FROM meta WHERE key = 'contested'").get
        if stored is None or len(tries) == 1:
            connection.execute("INSERT INTO meta VALUES ('contested', 'ours')")
        return stored

    with ThreadPoolExecutor(9) as pool:
        with held(engine, pool):
            contested, other = gathered(engine, pool, [conflicts, transaction_of])
        assert contested.result(WAIT_S) == "theirs"
        assert other.result(WAIT_S)
    assert len(tries) == 2


def test_a_write_that_loses_the_connection_is_alone_to_fail(engine: MemoryEngine):
    def ends_it(connection: Any) -> None:
        connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    with ThreadPoolExecutor(9) as pool:
        with held(engine, pool):
            first, failed, last = gathered(engine, pool, [transaction_of, ends_it, transaction_of])
        assert len({first.result(WAIT_S), last.result(WAIT_S)}) == 2
        with pytest.raises(DatabaseUnavailable):
            failed.result(WAIT_S)


def test_the_loss_of_a_commit_leaves_all_writes_of_the_group_uncertain(
    engine: MemoryEngine, postgres: PostgresConnection, monkeypatch: pytest.MonkeyPatch
):
    run_in_group = database.PostgresDatabase._run_in_group

    def refused(connection: Any) -> None:
        raise InvalidRequest("it rests on what the others wrote")

    def run_and_lose(self: Any, write: PendingWrite, connection: PostgresConnection) -> None:
        run_in_group(self, write, connection)
        if write.work is refused:
            own = connection.execute("SELECT pg_backend_pid()").get
            postgres.execute("SELECT pg_terminate_backend(?, 5000)", (own,))

    monkeypatch.setattr(database.PostgresDatabase, "_run_in_group", run_and_lose)
    with ThreadPoolExecutor(9) as pool:
        with held(engine, pool):
            writes = gathered(engine, pool, [transaction_of, refused])
        for write in writes:
            with pytest.raises(DatabaseUnavailable, match="unknown whether the write was stored"):
                write.result(WAIT_S)


def test_a_write_that_hides_an_error_of_the_database_is_alone_to_fail(engine: MemoryEngine):
    def hides(connection: Any) -> None:
        with suppress(psycopg.Error):
            connection.execute("INSERT INTO meta VALUES (NULL, 'x')")

    def stores(connection: Any) -> None:
        connection.execute("INSERT INTO meta VALUES ('first', 'here')")

    with ThreadPoolExecutor(9) as pool:
        with held(engine, pool):
            first, failed = gathered(engine, pool, [stores, hides])
        first.result(WAIT_S)
        with pytest.raises(RuntimeError, match="nothing was stored"):
            failed.result(WAIT_S)
    with engine.namespace(Scope()) as (connection, _):
        assert connection.execute("SELECT value FROM meta WHERE key = 'first'").get == "here"


def test_a_request_that_nobody_waits_for_does_not_end_the_writes_of_others(engine: MemoryEngine):
    entered: queue.Queue[Deadline] = queue.Queue()

    def write_with_deadline() -> object:
        with deadline(WAIT_S) as its:
            entered.put(its)
            return engine.write_rows(transaction_of)

    with ThreadPoolExecutor(9) as pool:
        with held(engine, pool):
            abandoned = pool.submit(write_with_deadline)
            its = entered.get(timeout=WAIT_S)
            others = gathered(engine, pool, [transaction_of] * 3, waiting=1)
            its.end()
        assert all(other.result(WAIT_S) for other in others)
        assert isinstance(abandoned.exception(WAIT_S), DeadlineExceeded | None)


def test_what_a_long_group_leaves_is_stored_by_the_next(engine: MemoryEngine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(database, "GROUP_S", 0.0)
    with ThreadPoolExecutor(9) as pool:
        with held(engine, pool):
            writes = gathered(engine, pool, [transaction_of] * 3)
        assert len({write.result(WAIT_S) for write in writes}) == 3


def test_a_write_that_waits_too_long_is_refused_and_never_stored(settings: Settings, postgres: PostgresConnection):
    impatient = settings.model_copy(update={"write_timeout_s": 0.2})
    engine = MemoryEngine.open(impatient, FakeEmbedder())
    with ThreadPoolExecutor(9) as pool, held(engine, pool):
        late = pool.submit(engine.write_rows, lambda rows: rows.execute("INSERT INTO meta VALUES ('late', 'x')"))
        with pytest.raises(Overloaded, match="waited too long"):
            late.result(WAIT_S)
    engine.close()
    assert postgres.execute("SELECT count(*) FROM meta WHERE key = 'late'").get == 0


def test_many_writers_of_a_namespace_store_each_memory_once(engine: MemoryEngine):
    def add(number: int) -> int | None:
        return engine.add(Scope("crowd"), MemoryDraft(f"note {number}", "notes")).id

    with ThreadPoolExecutor(16) as pool:
        ids = list(pool.map(add, range(200)))
    assert len(set(ids)) == 200
    with engine.namespace(Scope("crowd")) as (connection, _):
        assert connection.execute("SELECT count(*) FROM memories").get == 200
